#include "engine/ops/elementwise/updates.h"

namespace stepscope::ops {
namespace {

// Inputs: lr, scale?, step?, then parameter, gradient, momentum? of each parameter. Outputs: parameter', momentum',
// copy? of each, the second absent where the momentum is. Results may lie over the parameter and the momentum that they
// follow.
constexpr UpdateLists kLists{.inputs = 3, .outputs = 2};

Status inferShape(ShapeContext& c) { return inferUpdates(c, kLists); }
double flops(const OpShapes& shapes) { return flopsOfUpdates(shapes, kLists); }

}  // namespace

extern constexpr OpDef kSgdUpdatesOp{
    .name = "SgdUpdates",
    .domain = kInternalDomain,
    .doc = "SgdUpdate of several parameters in one pass; attributes as there",
    .inputs = {UpdateLists::kShared + 2, kMany},
    .outputs = {1, kMany},
    .absentInputs = bit(1) | bit(2),
    .category = OpCategory::kOptimizer,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
    .flops = flops,
    .gradients = {.first = UpdateLists::kShared + 1, .stride = kLists.inputs},
};

}  // namespace stepscope::ops
