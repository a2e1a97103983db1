#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSequenceConstructShape(ShapeContext& c) {
  if (c.inputCount() == 0) return c.error("no inputs; expected at least one");
  std::optional<Shape> shape = c.inputShape(0);
  for (std::size_t i = 1; i < c.inputCount(); ++i) {
    SS_TRY(sameType(c, 0, i));
    if (c.inputShape(i) != shape) shape.reset();
  }
  c.setOutputType(0, {ValueKind::kSequence, c.inputDType(0), shape});
  return {};
}

}  // namespace

constexpr OpDef kSequenceConstructOp{
    .name = "SequenceConstruct",
    .sinceVersion = 11,
    .doc = "A sequence of the inputs.",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSequenceConstructShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
