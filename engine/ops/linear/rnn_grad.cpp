#include "engine/ops/linear/ops.h"
#include "engine/ops/linear/recurrent_rule.h"

namespace stepscope::ops {
namespace {

Status inferRnnGradShape(ShapeContext& c) { return inferRecurrentGradient(c, 1); }

}  // namespace

constexpr OpDef kRNNGradOp{
    .name = "RNNGrad",
    .domain = kInternalDomain,
    .doc =
        "Back-propagation through time of RNN; inputs dY, dY_h, dY_c and those of the RNN, outputs the gradients of X, W, "
        "R, B, "
        "initial_h, initial_c, P.",
    .inputs = {6, 12},
    .outputs = {6, 7},
    .absentInputs = bit(0) | bit(1) | bit(2),
    .category = OpCategory::kOther,
    .precision = Precision::kLow,
    .hostInputs = bit(7),
    .inferShape = inferRnnGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = recurrentGradFlops,
};

}  // namespace stepscope::ops
