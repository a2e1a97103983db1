#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferDynamicQuantizeLinearShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  c.setOutput(0, DType::kU8, c.inputShape(0));
  if (c.hasOutput(1)) c.setOutput(1, DType::kF32, Shape{});
  if (c.hasOutput(2)) c.setOutput(2, DType::kU8, Shape{});
  return {};
}

}  // namespace

extern constexpr OpDef kDynamicQuantizeLinearOp{
    .name = "DynamicQuantizeLinear",
    .sinceVersion = 11,
    .doc = "y = uint8 of x, with float32 scale and zero point from its range; ONNX has float32 x alone, here any float",
    .inputs = {1, 1},
    .outputs = {3, 3},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferDynamicQuantizeLinearShape,
    .noGradientReason = kPiecewiseConstant,
};

}  // namespace stepscope::ops
