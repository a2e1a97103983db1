#include "engine/ops/linear/global_pool_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferGlobalMaxPoolGradShape(ShapeContext& c) {
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace

constexpr OpDef kGlobalMaxPoolGradOp{
    .name = "GlobalMaxPoolGrad",
    .domain = kInternalDomain,
    .doc = "dx = dy at the first maximum of each channel of x, else 0; inputs dy, x.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGlobalMaxPoolGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
