#include "engine/ops/elementwise/updates.h"

namespace stepscope::ops {
namespace {

// Inputs: lr, step, scale?, then parameter, gradient, m, v of each parameter. Outputs: parameter', m', v', copy? of each.
// Results may lie over the parameter, m and v that they follow.
constexpr UpdateLists kAdamUpdatesLists{.inputs = 4, .outputs = 3};

Status inferAdamUpdatesShape(ShapeContext& c) { return inferUpdates(c, kAdamUpdatesLists); }
double flopsOfAdamUpdates(const OpShapes& shapes) { return flopsOfUpdates(shapes, kAdamUpdatesLists); }

}  // namespace

extern constexpr OpDef kAdamUpdatesOp{
    .name = "AdamUpdates",
    .domain = kInternalDomain,
    .doc = "AdamUpdate of several parameters in one pass; attributes as there",
    .inputs = {UpdateLists::kShared + kAdamUpdatesLists.inputs, kMany},
    .outputs = {kAdamUpdatesLists.outputs, kMany},
    .absentInputs = bit(2),
    .category = OpCategory::kOptimizer,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferAdamUpdatesShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
    .flops = flopsOfAdamUpdates,
    .gradients = {.first = UpdateLists::kShared + 1, .stride = kAdamUpdatesLists.inputs},
};

}  // namespace stepscope::ops
