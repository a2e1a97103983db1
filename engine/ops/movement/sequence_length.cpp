#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSequenceLengthShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input is no sequence");
  c.setOutput(0, DType::kI64, Shape{});
  return {};
}

}  // namespace

constexpr OpDef kSequenceLengthOp{
    .name = "SequenceLength",
    .sinceVersion = 11,
    .doc = "The number of tensors in a sequence, a scalar.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSequenceLengthShape,
    .noGradientReason = "integer result",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
