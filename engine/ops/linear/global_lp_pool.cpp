#include "engine/ops/linear/global_pool_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferGlobalLpPoolShape(ShapeContext& c) {
  if (c.attrs().integer("p", 2) < 1)
    return c.error("attribute 'p' is " + std::to_string(c.attrs().integer("p", 2)) + "; expected 1 or more");
  return inferGlobalPool(c);
}

Status globalLpPoolGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.internal("LpPoolGrad", {g.dy(0), g.x(0), g.y(0)}, {{"p", g.attrs().integer("p", 2)}}));
  return {};
}

}  // namespace

constexpr OpDef kGlobalLpPoolOp{
    .name = "GlobalLpPool",
    .sinceVersion = 2,
    .doc = "(sum |x|^p)^(1/p) over all spatial axes, which stay with extent 1.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferGlobalLpPoolShape,
    .gradient = globalLpPoolGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
