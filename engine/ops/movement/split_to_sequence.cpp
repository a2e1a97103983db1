#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSplitToSequenceShape(ShapeContext& c) {
  std::optional<Shape> shape = c.inputShape(0);
  if (shape) {
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *shape));
    if (!c.hasInput(1) && c.attrs().integer("keepdims", 1) == 0) {
      shape->erase(shape->begin() + static_cast<std::ptrdiff_t>(axis));
    } else if (!c.hasInput(1)) {
      (*shape)[axis] = Dim(1);
    } else {
      (*shape)[axis] = c.freshDim(0, axis);  // parts may differ in size
    }
  }
  c.setOutputType(0, {ValueKind::kSequence, c.inputDType(0), shape});
  return {};
}

}  // namespace

constexpr OpDef kSplitToSequenceOp{
    .name = "SplitToSequence",
    .sinceVersion = 11,
    .doc =
        "Parts of the input along `axis` as a sequence: of size 1 (keepdims=0 drops the axis), of one size, or of the "
        "listed sizes.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferSplitToSequenceShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
