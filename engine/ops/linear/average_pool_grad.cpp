#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferAveragePoolGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 1, c.inputShape(0)->size());
}

}  // namespace

constexpr OpDef kAveragePoolGradOp{
    .name = "AveragePoolGrad",
    .domain = kInternalDomain,
    .doc = "dx of AveragePool from dy and the shape of x; attributes of the AveragePool.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = bit(1),
    .inferShape = inferAveragePoolGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .layout = {.inputs = bit(0), .outputs = bit(0), .together = true},
};

}  // namespace stepscope::ops
