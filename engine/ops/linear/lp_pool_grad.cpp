#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferLpPoolGradShape(ShapeContext& c) {
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace

constexpr OpDef kLpPoolGradOp{
    .name = "LpPoolGrad",
    .domain = kInternalDomain,
    .doc =
        "dx = dy · sign(x) · (|x| / y)^(p-1), 0 where y = 0; inputs dy, x, y. Without kernel_shape the window is the whole "
        "input.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferLpPoolGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
