#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvInputGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 2, c.inputShape(0)->size());
}

double flopsOfConvInputGrad(const OpShapes& s) { return convFlops(s.inputs[0], s.inputs[1], s.outputs[0], s.attrs); }

}  // namespace

constexpr OpDef kConvInputGradOp{
    .name = "ConvInputGrad",
    .domain = kInternalDomain,
    .doc = "dx of Conv from dy, w and the shape of x; attributes of the Conv.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kLow,
    .hostInputs = bit(2),
    .inferShape = inferConvInputGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = flopsOfConvInputGrad,
    .layout = {.inputs = bit(0), .outputs = bit(0), .gains = true},
};

}  // namespace stepscope::ops
