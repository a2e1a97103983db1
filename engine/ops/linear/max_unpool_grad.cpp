#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferMaxUnpoolGradShape(ShapeContext& c) {
  c.setOutput(0, c.inputDType(0), c.inputShape(1));
  return {};
}

}  // namespace

constexpr OpDef kMaxUnpoolGradOp{
    .name = "MaxUnpoolGrad",
    .domain = kInternalDomain,
    .doc = "dx of MaxUnpool: dy read at the places of the indices; inputs dy, indices, attributes of the MaxUnpool.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferMaxUnpoolGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
