#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferConcatFromSequenceShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input is no sequence");
  std::optional<Shape> shape = c.inputShape(0);
  if (shape) {
    if (c.attrs().integer("new_axis", 0) != 0) shape->push_back(Dim(1));  // as many axes as the result has
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *shape));
    if (c.attrs().integer("new_axis", 0) != 0) {
      shape->pop_back();
      shape->insert(shape->begin() + static_cast<std::ptrdiff_t>(axis), c.freshDim(0, axis));
    } else {
      (*shape)[axis] = c.freshDim(0, axis);
    }
  }
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

}  // namespace

constexpr OpDef kConcatFromSequenceOp{
    .name = "ConcatFromSequence",
    .sinceVersion = 11,
    .doc = "The tensors of a sequence one after another along `axis`, which new_axis=1 inserts first.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferConcatFromSequenceShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
