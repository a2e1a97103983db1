#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferReduceToShapeShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  const auto reject = [&](const Shape& target) {
    return c.error("shape " + shapeText(target) + " does not broadcast to " + shapeText(*c.inputShape(0)));
  };
  std::optional<Shape> target = c.contents(1);
  if (!target)
    if (const auto numbers = c.integers(1)) target = shapeOf(*numbers);
  if (!target && c.rankKnown(1) && c.inputShape(1)->size() == 1 && c.rankKnown(0)) {
    const auto rank = (*c.inputShape(1))[0].asKnown();
    if (rank && *rank >= 0 && *rank <= static_cast<std::int64_t>(c.inputShape(0)->size()))
      target = c.freshShape(0, static_cast<std::size_t>(*rank));
  } else if (target && c.rankKnown(0)) {
    const Shape x = *c.inputShape(0);
    if (target->size() > x.size()) return reject(*target);
    for (std::size_t i = 0; i < target->size(); ++i) {
      const Dim& wanted = (*target)[i];
      const Dim& found = x[x.size() - target->size() + i];
      if (wanted.known() && found.known() && !(wanted == found) && !(wanted == Dim(1))) return reject(*target);
    }
  }
  c.setOutput(0, c.inputDType(0), target);
  return {};
}

Status reduceToShapeGradient(GradientContext& g) {
  g.setGradient(0, g.expandTo(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

extern const OpDef kReduceToShapeOp{
    .name = "ReduceToShape",
    .domain = kInternalDomain,
    .doc = "x, shape → y: sums x over the axes along which a tensor of `shape` was broadcast to x; y has that shape.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = bit(1),
    .inferShape = inferReduceToShapeShape,
    .gradient = reduceToShapeGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
    .layout = {.inputs = bit(0), .channels = ChannelRule::kSummedBack},
};

}  // namespace stepscope::ops
