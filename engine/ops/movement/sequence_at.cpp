#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSequenceAtShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input is no sequence");
  std::optional<Shape> shape = c.inputShape(0);
  // Elements may differ in what is no number: two of them must not share a symbol.
  for (std::size_t axis = 0; shape && axis < shape->size(); ++axis)
    if (!(*shape)[axis].known()) (*shape)[axis] = c.freshDim(0, axis);
  c.setOutput(0, c.inputDType(0), std::move(shape));
  return {};
}

}  // namespace

constexpr OpDef kSequenceAtOp{
    .name = "SequenceAt",
    .sinceVersion = 11,
    .doc = "The tensor at a position of a sequence; negative positions count from the end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferSequenceAtShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
