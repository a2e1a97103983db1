// Moves casts past Transpose, so that fold_transposes finds the Transpose next to the matrix product: Cast(Transpose(x))
// that a product reads becomes Transpose(Cast(x)), and the Transpose of a product's result that was cast is taken before the
// cast. A cast and a Transpose commute, so every number stays. Without it the weights that an exporter stores transposed are
// copied in every step of mixed precision, and so are their gradients. A cast that stays is a near miss, which names the ops
// on both sides: precision.force or master-weights may save it. Runs before fold_transposes, on the step of
// precision bf16 or fp16 and on files that hold casts.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status propagateCasts(Graph& graph, PassContext& context);

}  // namespace stepscope
