#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferCompressShape(ShapeContext& c) {
  if (c.inputDType(1) != DType::kBool && c.inputDType(1) != DType::kUndefined) return c.error("condition is not bool");
  const std::optional<Shape> data = c.inputShape(0);
  if (!c.attrs().has("axis")) {
    c.setOutput(0, c.inputDType(0), c.freshShape(0, 1));
    return {};
  }
  std::optional<Shape> shape = data;
  if (shape) {
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *shape));
    (*shape)[axis] = c.freshDim(0, axis);
  }
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status compressGradient(GradientContext& g) {
  const ValueId kept = g.squeeze(g.op("NonZero", {g.x(1)}), {0});
  if (g.attrs().has("axis")) {
    g.setGradient(0, g.internal("GatherGrad", {g.dy(0), kept, g.shapeOf(g.x(0))}, {{"axis", g.attrs().integer("axis", 0)}}));
    return {};
  }
  const ValueId count = g.unsqueeze(g.op("Size", {g.x(0)}), {0});
  g.setGradient(0, g.reshapeLike(g.internal("GatherGrad", {g.dy(0), kept, count}, {{"axis", std::int64_t{0}}}), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kCompressOp{
    .name = "Compress",
    .sinceVersion = 11,
    .doc =
        "The slices along `axis` (without it: the elements) where the condition holds; a short condition is false beyond "
        "its end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferCompressShape,
    .gradient = compressGradient,
    .differentiableInputs = bit(0),
    .dataDependentShape = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
