#include "engine/ops/elementwise/updates.h"

namespace stepscope::ops {
namespace {

// Inputs: lr, scale?, step?, then parameter, gradient, momentum? of each parameter. Outputs: parameter', momentum',
// copy? of each, the second absent where the momentum is. Results may lie over the parameter and the momentum that they
// follow.
constexpr UpdateLists kSgdUpdatesLists{.inputs = 3, .outputs = 2};

Status inferSgdUpdatesShape(ShapeContext& c) { return inferUpdates(c, kSgdUpdatesLists); }
double flopsOfSgdUpdates(const OpShapes& shapes) { return flopsOfUpdates(shapes, kSgdUpdatesLists); }

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
    .inferShape = inferSgdUpdatesShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
    .flops = flopsOfSgdUpdates,
    .gradients = {.first = UpdateLists::kShared + 1, .stride = kSgdUpdatesLists.inputs},
};

}  // namespace stepscope::ops
