#include "engine/ops/elementwise/updates.h"

namespace stepscope::ops {
namespace {

// Inputs: lr, step, scale?, then parameter, gradient, m, v of each parameter. Outputs: parameter', m', v', copy? of each.
// Results may lie over the parameter, m and v that they follow.
constexpr UpdateLists kLists{.inputs = 4, .outputs = 3};

Status inferShape(ShapeContext& c) { return inferUpdates(c, kLists); }
double flops(const OpShapes& shapes) { return flopsOfUpdates(shapes, kLists); }

}  // namespace

extern constexpr OpDef kAdamUpdatesOp{
    .name = "AdamUpdates",
    .domain = kInternalDomain,
    .doc = "AdamUpdate of several parameters in one pass; attributes as there",
    .inputs = {UpdateLists::kShared + kLists.inputs, kMany},
    .outputs = {kLists.outputs, kMany},
    .absentInputs = bit(2),
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
