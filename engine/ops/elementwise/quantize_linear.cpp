#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/quantize_shape.h"

namespace stepscope::ops {
namespace {

Status inferQuantizeLinearShape(ShapeContext& c) {
  if (c.hasInput(2)) SS_TRY(requireSameShape(c, 1, 2));
  SS_TRY(checkScale(c));
  DType dtype = DType::kU8;
  const auto number = c.attrs().integer("output_dtype", 0);
  if (c.hasInput(2))
    dtype = c.inputDType(2);
  else if (number != 0)
    dtype = dtypeFromOnnx(number > 0 && number < 256 ? static_cast<int>(number) : 0).value_or(DType::kUndefined);
  const bool unknownYet = c.hasInput(2) && dtype == DType::kUndefined;
  if (!unknownYet && !(isInteger(dtype) && dtypeSize(dtype) <= 2))
    return c.error("quantised type " + std::string(dtypeName(dtype)) + "; (u)int8 or (u)int16 in this build");
  c.setOutput(0, dtype, c.inputShape(0));
  return {};
}

}  // namespace

extern constexpr OpDef kQuantizeLinearOp{
    .name = "QuantizeLinear",
    .sinceVersion = 21,
    .doc = "y = saturate(round(x / scale) + zero_point); per tensor, axis or block",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferQuantizeLinearShape,
    .noGradientReason = kPiecewiseConstant,
};

}  // namespace stepscope::ops
