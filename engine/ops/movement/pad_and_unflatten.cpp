#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

// PadAndUnflatten(x, indices, dims): rows of x at flat positions `indices` of a zero tensor [dims[0], dims[1], ...].
Status inferPadAndUnflattenShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  const auto dims = knownContents(c, 2);
  if (dims && dims->size() != 2) return c.error(std::to_string(dims->size()) + " extents; expected 2");
  const std::optional<Shape> x = c.inputShape(0);
  if (!x) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  if (x->empty()) return c.error("input of rank 0; expected rows");
  if (c.rankKnown(1) && c.inputShape(1)->size() == 1)
    SS_TRY(c.unify(x->front(), c.inputShape(1)->front(), "rows and indices"));
  Shape shape = dims ? *dims : Shape{c.freshDim(0, 0), c.freshDim(0, 1)};
  shape.insert(shape.end(), x->begin() + 1, x->end());
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status padAndUnflattenGradient(GradientContext& g) {
  g.setGradient(0, g.emit("com.microsoft", "FlattenAndUnpad", {g.dy(0), g.x(1)}, 1).front());
  return {};
}

}  // namespace

constexpr OpDef kPadAndUnflattenOp{
    .name = "PadAndUnflatten",
    .domain = "com.microsoft",
    .doc = "Rows of x added at flat positions `indices` of zeros, the first axis split into the two extents of input 2.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(2),
    .inferShape = inferPadAndUnflattenShape,
    .gradient = padAndUnflattenGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
