// Extents of the labels that an attached loss reads, in synthetic data: those that the output has once the other inputs are
// there. What the file declares for the output, or names alike, may be something else.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/build/batch.h"
#include "engine/ir/graph.h"
#include "engine/ops/operators.h"

namespace stepscope {

// The output that is compared with `input`, when that input feeds an attached loss (attach_loss.h); else invalid.
ValueId comparedOutput(const Graph& graph, ValueId input);

// The extents of `labels` that belong to the other inputs: their extents by name, and the contents of those of integers,
// from which extents may follow. `operators`: those of the model, whose shape rules tell. Nothing when they are not known
// before the step runs, or when the inputs do not fit the graph.
std::optional<Dims> labelExtents(const Graph& graph, const Operators& operators, ValueId labels,
                                 const std::map<std::string, Dims>& inputs, const Batch& integers);

}  // namespace stepscope
