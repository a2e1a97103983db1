#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferStringNormalizerShape(ShapeContext& c) {
  const std::optional<Shape> x = c.inputShape(0);
  if (c.inputDType(0) != DType::kString && c.inputDType(0) != DType::kUndefined) return c.error("input is not of strings");
  if (x && x->size() != 1 && !(x->size() == 2 && (!x->front().known() || x->front() == Dim(1))))
    return c.error("shape " + shapeText(*x) + "; expected [C] or [1, C]");
  std::optional<Shape> shape;
  if (x) {
    shape = x;
    shape->back() = c.freshDim(0, x->size() - 1);
  }
  c.setOutput(0, DType::kString, shape);
  return {};
}

}  // namespace

constexpr OpDef kStringNormalizerOp{
    .name = "StringNormalizer",
    .sinceVersion = 10,
    .doc = "The strings that are no stop words, in lower or upper case (ASCII letters); one empty string when none is left.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kNormalization,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferStringNormalizerShape,
    .noGradientReason = "strings",
    .dataDependentShape = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
