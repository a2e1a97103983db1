#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status maxPoolGradient(GradientContext& g) {
  if (!g.needs(0)) return {};
  const ValueId indices = g.ensureOutput(1);
  g.setGradient(0, g.internal("MaxPoolGrad", {g.dy(0), indices, g.shapeOf(g.x(0))}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kMaxPoolOp{
    .name = "MaxPool",
    .sinceVersion = 12,
    .doc = "Largest element under each window; output 1 is its index in the flattened input, the first one on ties.",
    .inputs = {1, 1},
    .outputs = {1, 2},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferPool,
    .gradient = maxPoolGradient,
    .differentiableInputs = bit(0),
    .layout = {.inputs = bit(0), .outputs = bit(0) | bit(1), .together = true},
};

}  // namespace stepscope::ops
