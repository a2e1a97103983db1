#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferNonMaxSuppressionShape(ShapeContext& c) {
  for (std::size_t i = 0; i < 2; ++i)
    if (c.rankKnown(i) && c.inputShape(i)->size() != 3)
      return c.error("input " + std::to_string(i) + " of shape " + shapeText(*c.inputShape(i)) + "; expected three axes");
  c.setOutput(0, DType::kI64, Shape{c.freshDim(0, 0), Dim(3)});
  return {};
}

}  // namespace

constexpr OpDef kNonMaxSuppressionOp{
    .name = "NonMaxSuppression",
    .sinceVersion = 11,
    .doc =
        "[batch, class, box] of the boxes kept: by score, without those that overlap a kept one by more than the threshold.",
    .inputs = {2, 5},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(2) | bit(3) | bit(4),
    .inferShape = inferNonMaxSuppressionShape,
    .noGradientReason = "integer result",
    .dataDependentShape = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
