// Weights that mixed precision reads in float16 or bfloat16 are kept in that type beside the float32 ones: the cast of a
// parameter becomes a state value (engine/ir/low_copy.h) that the parameter's update writes in the same pass over memory,
// attributes copies and copy_type. So no step casts a weight, and no step's arena holds one. A frozen parameter's copy is
// written by nobody. The numbers are those of the cast: the update rounds what it has just written.
//
// A cast whose result the user keeps, that stands under a condition of If, or whose parameter is written by something else
// than AdamUpdate, SgdUpdate or LambUpdate stays: near misses. Runs after propagate_casts and fold_transposes, which bring
// casts next to the parameters, and before group_updates, which joins the updates with their copies.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status keepLowWeights(Graph& graph, PassContext& context);

}  // namespace stepscope
