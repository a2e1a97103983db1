#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSizeShape(ShapeContext& c) {
  c.setOutput(0, DType::kI64, Shape{});
  if (const auto& input = c.inputShape(0)) c.setContents(0, {productOf(*input, 0, input->size())});
  return {};
}

}  // namespace

constexpr OpDef kSizeOp{
    .name = "Size",
    .sinceVersion = 21,
    .doc = "The number of elements as a scalar.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSizeShape,
    .noGradientReason = "integer result",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
