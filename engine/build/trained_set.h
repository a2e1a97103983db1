// Which initializers are trained, and why (or why not).
#pragma once

#include <string>
#include <vector>

#include "engine/build/options.h"
#include "engine/ir/graph.h"

namespace stepscope {

struct ParameterChoice {
  ValueId value;
  bool trained = false;
  std::string reason;
};

// Default: float initializers that reach the loss through differentiable edges, except running statistics of
// BatchNormalization, scalars that an exporter stored (rank 0 and a generated name: factors, epsilons), bounds of Clip
// without a module's name, scalars that only take part in arithmetic and bear the name of no variable, what holds an
// infinity, and names of well-known buffers (inv_freq, position_ids, …). `--freeze` takes away, `--train` selects; both are
// searched in the name. Error: a malformed regular expression, or a `--train` that matches nothing.
Result<std::vector<ParameterChoice>> chooseTrained(const Graph& graph, ValueId loss, const TrainOptions& options,
                                                   const OpRegistry& ops);

// Patterns of --freeze and --group that select nothing, each as the text of a warning: a typing error would train in
// silence.
std::vector<std::string> patternsWithoutMatch(const Graph& graph, const std::vector<ParameterChoice>& choices,
                                              const TrainOptions& options);

}  // namespace stepscope
