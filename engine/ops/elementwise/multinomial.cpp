#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferMultinomialShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  SS_ASSIGN(const DType dtype, attributeType(c, "dtype", DType::kI32));
  if (dtype != DType::kI32 && dtype != DType::kI64)
    return c.error("attribute dtype is " + std::string(dtypeName(dtype)) + "; int32 or int64");
  const std::int64_t samples = c.attrs().integer("sample_size", 1);
  if (samples < 0) return c.error("sample_size " + std::to_string(samples) + "; 0 or more");
  if (c.rankKnown(0) && c.inputShape(0)->size() != 2)
    return c.error("input shape " + shapeText(*c.inputShape(0)) + "; [batch, classes]");
  c.setOutput(0, dtype, Shape{c.rankKnown(0) ? (*c.inputShape(0))[0] : c.freshDim(0, 0), Dim(samples)});
  return {};
}

}  // namespace

extern constexpr OpDef kMultinomialOp{
    .name = "Multinomial",
    .sinceVersion = 7,
    .doc = "y[b, s] = a class drawn with the unnormalised log probabilities x[b, :]",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferMultinomialShape,
    .noGradientReason = kRandomDraw,
    .random = true,
};

}  // namespace stepscope::ops
