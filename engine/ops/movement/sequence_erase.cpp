#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSequenceEraseShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input 0 is no sequence");
  c.setOutputType(0, c.inputType(0));
  return {};
}

}  // namespace

constexpr OpDef kSequenceEraseOp{
    .name = "SequenceErase",
    .sinceVersion = 11,
    .doc = "A sequence without the tensor at a position, or without the last.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferSequenceEraseShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
