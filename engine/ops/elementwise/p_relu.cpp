#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferPReluShape(ShapeContext& c) {
  SS_TRY(requireSameTypes(c));
  if (c.rankKnown(0) && c.rankKnown(1)) {
    SS_ASSIGN(const Shape shape, c.broadcast(*c.inputShape(0), *c.inputShape(1)));
    if (shape.size() != c.inputShape(0)->size())
      return c.error("slope " + shapeText(*c.inputShape(1)) + " does not broadcast to x " + shapeText(*c.inputShape(0)));
  }
  return shape_rules::sameAsInput0(c);
}

Status pReluGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId positive = g.op("Greater", {x, g.scalar(0, x)});
  if (g.needs(0)) g.setGradient(0, g.where(positive, g.dy(0), g.mul(g.dy(0), g.x(1))));
  if (g.needs(1)) g.setGradient(1, g.reduceTo(dropWhere(g, positive, g.mul(g.dy(0), x)), g.x(1)));
  return {};
}

}  // namespace

extern constexpr OpDef kPReluOp{
    .name = "PRelu",
    .sinceVersion = 16,
    .doc = "y = x >= 0 ? x : slope x; slope broadcasts to x",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferPReluShape,
    .gradient = pReluGradient,
    .differentiableInputs = bit(0) | bit(1),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
