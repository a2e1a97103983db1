#include "engine/ops/linear/ops.h"
#include "engine/ops/linear/recurrent_rule.h"

namespace stepscope::ops {
namespace {

Status inferGruGradShape(ShapeContext& c) { return inferRecurrentGradient(c, 3); }

}  // namespace

constexpr OpDef kGRUGradOp{
    .name = "GRUGrad",
    .domain = kInternalDomain,
    .doc =
        "Back-propagation through time of GRU; inputs dY, dY_h, dY_c and those of the GRU, outputs the gradients of X, W, "
        "R, B, "
        "initial_h, initial_c, P.",
    .inputs = {6, 14},
    .outputs = {6, 7},
    .absentInputs = bit(0) | bit(1) | bit(2),
    .category = OpCategory::kOther,
    .precision = Precision::kLow,
    .hostInputs = bit(7),
    .inferShape = inferGruGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = recurrentGradFlops,
};

}  // namespace stepscope::ops
