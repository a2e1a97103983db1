#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferShape(ShapeContext& c) {
  SS_TRY(requireType(c, 0, DType::kBool));
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace

extern constexpr OpDef kGateOp{
    .name = "Gate",
    .domain = kInternalDomain,
    .doc = "y = condition == attribute `expected` ? x : zeros; x is not read otherwise",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = inferShape,
    .noGradientReason = "only made by the gradient of Select",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(1),
};

}  // namespace stepscope::ops
