#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferConstantOfShapeShape(ShapeContext& c) {
  const Tensor* value = c.attrs().tensor("value");
  if (value != nullptr && value->elements() != 1)
    return c.error("value of shape " + dimsText(value->dims()) + "; expected one element");
  const DType dtype = value != nullptr ? value->dtype() : DType::kF32;
  SS_TRY(outputShapedByInput(c, 0, dtype));
  const auto shape = knownContents(c, 0);
  if (!shape || shape->size() > 1 || value == nullptr || !(isInteger(dtype) || dtype == DType::kBool)) return {};
  const std::int64_t count = shape->empty() ? 1 : shape->front().asKnown().value_or(-1);
  if (count >= 0 && count <= static_cast<std::int64_t>(kMaxContents))
    c.setContents(0, Contents(static_cast<std::size_t>(count), Dim(elementAsInt(value->view(), 0))));
  return {};
}

}  // namespace

constexpr OpDef kConstantOfShapeOp{
    .name = "ConstantOfShape",
    .sinceVersion = 21,
    .doc = "A tensor of the given shape, filled with `value` (float32 zero when absent).",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(0),
    .inferShape = inferConstantOfShapeShape,
    .noGradientReason = "the result does not depend on float inputs",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
