#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferNonZeroShape(ShapeContext& c) {
  Shape shape = c.freshShape(0, 2);
  if (const auto& input = c.inputShape(0)) shape[0] = Dim(static_cast<std::int64_t>(input->size()));
  c.setOutput(0, DType::kI64, shape);
  return {};
}

}  // namespace

constexpr OpDef kNonZeroOp{
    .name = "NonZero",
    .sinceVersion = 13,
    .doc = "The indices of the elements that are not zero, one column each, in row-major order.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferNonZeroShape,
    .noGradientReason = "integer result",
    .dataDependentShape = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
