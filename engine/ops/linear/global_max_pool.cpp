#include "engine/ops/linear/global_pool_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status globalMaxPoolGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.internal("GlobalMaxPoolGrad", {g.dy(0), g.x(0)}));
  return {};
}

}  // namespace

constexpr OpDef kGlobalMaxPoolOp{
    .name = "GlobalMaxPool",
    .doc = "Maximum over all spatial axes, which stay with extent 1; on ties the first gets the gradient.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGlobalPool,
    .gradient = globalMaxPoolGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
