#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferReverseSequenceShape(ShapeContext& c) {
  const std::int64_t batch = c.attrs().integer("batch_axis", 1), time = c.attrs().integer("time_axis", 0);
  if ((batch != 0 && batch != 1) || (time != 0 && time != 1) || batch == time)
    return c.error("batch_axis " + std::to_string(batch) + " and time_axis " + std::to_string(time) + "; expected 0 and 1");
  const std::optional<Shape> shape = c.inputShape(0);
  if (shape && shape->size() < 2) return c.error("shape " + shapeText(*shape) + "; expected at least two axes");
  if (shape && c.rankKnown(1) && c.inputShape(1)->size() == 1)
    SS_TRY(
        c.unify((*shape)[static_cast<std::size_t>(batch)], c.inputShape(1)->front(), "batch extent and number of lengths"));
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status reverseSequenceGradient(GradientContext& g) {
  g.setGradient(0, g.op("ReverseSequence", {g.dy(0), g.x(1)}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kReverseSequenceOp{
    .name = "ReverseSequence",
    .sinceVersion = 10,
    .doc = "The first lens[b] time steps of batch entry b in reverse order, the others as they are.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferReverseSequenceShape,
    .gradient = reverseSequenceGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
