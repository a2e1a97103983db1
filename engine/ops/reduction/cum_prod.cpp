#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferCumProdShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  const auto axis = c.integers(1);
  if (axis && axis->size() != 1) return c.error("axis has " + std::to_string(axis->size()) + " elements; expected one");
  if (axis && c.rankKnown(0) && !c.inputShape(0)->empty()) SS_TRY(c.axis(axis->front(), *c.inputShape(0)));
  return shape_rules::sameAsInput0(c);
}

// Without a division, so that zeros among the factors have their slopes.
Status cumProdGradient(GradientContext& g) {
  g.setGradient(0, g.internal("CumProdGrad", {g.dy(0), g.x(0), g.x(1)}, g.attrs()));
  return {};
}

}  // namespace

// Of opset 26; the internal opset keeps its form.
extern const OpDef kCumProdOp{
    .name = "CumProd",
    .sinceVersion = 21,
    .doc = "Running product along `axis` (input 1); `exclusive` leaves out the element itself, `reverse` starts at the end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = inferCumProdShape,
    .gradient = cumProdGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
};

}  // namespace stepscope::ops
