#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferUniqueShape(ShapeContext& c) {
  std::optional<Shape> shape = c.inputShape(0);
  const Dim count = c.freshDim(0, 0);
  if (!c.attrs().has("axis")) {
    shape = Shape{count};
  } else if (shape) {
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *shape));
    (*shape)[axis] = count;
  }
  c.setOutput(0, c.inputDType(0), shape);
  for (std::size_t i = 1; i < 4; ++i)
    if (c.hasOutput(i)) c.setOutput(i, DType::kI64, Shape{i == 2 ? c.freshDim(2, 0) : count});
  return {};
}

// y is x at the first occurrences, which output 1 lists.
Status uniqueGradient(GradientContext& g) {
  const ValueId first = g.ensureOutput(1);
  if (g.attrs().has("axis")) {
    g.setGradient(0,
                  g.internal("GatherGrad", {g.dy(0), first, g.shapeOf(g.x(0))}, {{"axis", g.attrs().integer("axis", 0)}}));
    return {};
  }
  const ValueId count = g.unsqueeze(g.op("Size", {g.x(0)}), {0});
  g.setGradient(0, g.reshapeLike(g.internal("GatherGrad", {g.dy(0), first, count}, {{"axis", std::int64_t{0}}}), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kUniqueOp{
    .name = "Unique",
    .sinceVersion = 11,
    .doc =
        "The different slices along `axis` (without it: elements), sorted or as met, with first positions, inverse and "
        "counts.",
    .inputs = {1, 1},
    .outputs = {1, 4},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferUniqueShape,
    .gradient = uniqueGradient,
    .differentiableInputs = bit(0),
    .differentiableOutputs = bit(0),
    .dataDependentShape = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
