// Option optimizer-graph: a parameter update that somebody wrote as a model, put into the step once for each trained
// parameter.
//
// Names join it to the step. Inputs: `parameter`, `gradient` (already clipped), `learning_rate` (float32 scalar, with its
// schedule and group), `step` (int64 scalar: number of the update, from 1), `weight_decay` (float32 scalar). Every other
// input X is state of the optimizer, zeros at the start, and needs an output `X_next` of its type. Output `parameter_next`
// is the new parameter. Initializers are constants. An input without a shape takes parameters of any rank.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/build/import.h"
#include "engine/build/options.h"

namespace stepscope {

class OptimizerGraph {
 public:
  // What one parameter is updated with.
  struct Operands {
    std::string name;  // of the parameter
    ValueId weight, gradient, learningRate, update;
    double weightDecay = 0;
    ValueId owner;  // the parameter itself: keys and module come from it
  };
  struct Update {
    ValueId parameter;                // its next contents
    std::vector<StateUpdate> states;  // "<parameter>.X" and its next contents
  };

  // Errors: those of importModel; kInvalidArgument for a name that is missing or stands for nothing, all of them at once.
  static Result<OptimizerGraph> open(const std::string& path, std::shared_ptr<const Registry> registry);

  bool readsWeightDecay() const;
  std::vector<std::string> stateNames() const;  // X of each
  // Errors: those of splice; kInvalidArgument where a next value has another type than what it replaces.
  Result<Update> add(Graph& graph, Inference& inference, const Operands& operands) const;

 private:
  explicit OptimizerGraph(std::shared_ptr<const ImportedModel> part) : part_(std::move(part)) {}

  std::shared_ptr<const ImportedModel> part_;
};

// The one that the options name, if they name one; warns of other options of the optimizer, which it does without.
Result<std::optional<OptimizerGraph>> optimizerGraphOf(const TrainOptions& options, std::shared_ptr<const Registry> registry,
                                                       BuildLog& log);

}  // namespace stepscope
