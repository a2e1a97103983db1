#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

// FlattenAndUnpad(x, indices): the rows of x, its two first axes seen as one, at `indices`; and the two extents.
Status inferFlattenAndUnpadShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  const std::optional<Shape> x = c.inputShape(0);
  if (c.hasOutput(1)) c.setOutput(1, DType::kI64, Shape{Dim(2)});
  if (!x) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  if (x->size() < 2) return c.error("shape " + shapeText(*x) + "; expected at least two axes");
  Shape shape{c.rankKnown(1) && c.inputShape(1)->size() == 1 ? c.inputShape(1)->front() : c.freshDim(0, 0)};
  shape.insert(shape.end(), x->begin() + 2, x->end());
  c.setOutput(0, c.inputDType(0), shape);
  if (c.hasOutput(1)) c.setContents(1, {(*x)[0], (*x)[1]});
  return {};
}

Status flattenAndUnpadGradient(GradientContext& g) {
  const ValueId extents = g.op("Shape", {g.x(0)}, {{"start", std::int64_t{0}}, {"end", std::int64_t{2}}});
  g.setGradient(0, g.emit("com.microsoft", "PadAndUnflatten", {g.dy(0), g.x(1), extents}, 1).front());
  return {};
}

}  // namespace

constexpr OpDef kFlattenAndUnpadOp{
    .name = "FlattenAndUnpad",
    .domain = "com.microsoft",
    .doc = "Rows `indices` of x with its two first axes seen as one; output 1 holds the two extents.",
    .inputs = {2, 2},
    .outputs = {1, 2},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferFlattenAndUnpadShape,
    .gradient = flattenAndUnpadGradient,
    .differentiableInputs = bit(0),
    .differentiableOutputs = bit(0),
    .traffic = {.picked = bit(0), .moves = true},
};

}  // namespace stepscope::ops
