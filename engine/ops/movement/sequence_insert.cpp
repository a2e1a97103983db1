#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSequenceInsertShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input 0 is no sequence");
  SS_TRY(sameType(c, 0, 1));
  std::optional<Shape> shape = c.inputShape(1);
  if (c.inputShape(0) != shape) shape.reset();
  c.setOutputType(0, {ValueKind::kSequence, c.inputDType(0), shape});
  return {};
}

}  // namespace

constexpr OpDef kSequenceInsertOp{
    .name = "SequenceInsert",
    .sinceVersion = 11,
    .doc = "A sequence with one tensor more, at a position or at the end.",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(2),
    .inferShape = inferSequenceInsertShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
