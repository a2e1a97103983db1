#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status averagePoolGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.internal("AveragePoolGrad", {g.dy(0), g.shapeOf(g.x(0))}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kAveragePoolOp{
    .name = "AveragePool",
    .sinceVersion = 19,
    .doc = "Mean under each window; count_include_pad counts the padding too.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferPool,
    .gradient = averagePoolGradient,
    .differentiableInputs = bit(0),
    .layout = {.inputs = bit(0), .outputs = bit(0), .together = true},
};

}  // namespace stepscope::ops
