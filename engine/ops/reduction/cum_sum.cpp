#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferCumSumShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  const auto axis = c.integers(1);
  if (axis && axis->size() != 1) return c.error("axis has " + std::to_string(axis->size()) + " elements; expected one");
  if (axis && c.rankKnown(0) && !c.inputShape(0)->empty()) SS_TRY(c.axis(axis->front(), *c.inputShape(0)));
  return shape_rules::sameAsInput0(c);
}

Status cumSumGradient(GradientContext& g) {
  const std::int64_t reverse = g.attrs().integer("reverse", 0);
  g.setGradient(0, g.op("CumSum", {g.dy(0), g.x(1)},
                        {{"exclusive", g.attrs().integer("exclusive", 0)}, {"reverse", std::int64_t{reverse == 0}}}));
  return {};
}

}  // namespace

extern const OpDef kCumSumOp{
    .name = "CumSum",
    .sinceVersion = 14,
    .doc = "Running sum along `axis` (input 1); `exclusive` leaves out the element itself, `reverse` starts at the end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = inferCumSumShape,
    .gradient = cumSumGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
};

}  // namespace stepscope::ops
