#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferLpPoolShape(ShapeContext& c) {
  if (c.attrs().integer("p", 2) < 1)
    return c.error("attribute 'p' is " + std::to_string(c.attrs().integer("p", 2)) + "; expected 1 or more");
  return inferPool(c);
}

Status lpPoolGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.internal("LpPoolGrad", {g.dy(0), g.x(0), g.y(0)}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kLpPoolOp{
    .name = "LpPool",
    .sinceVersion = 18,
    .doc = "(sum |x|^p)^(1/p) under each window.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferLpPoolShape,
    .gradient = lpPoolGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
