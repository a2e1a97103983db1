#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvTransposeInputGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 2, c.inputShape(0)->size());
}

double flopsOfConvTransposeInputGrad(const OpShapes& s) { return convFlops(s.outputs[0], s.inputs[1]); }

}  // namespace

constexpr OpDef kConvTransposeInputGradOp{
    .name = "ConvTransposeInputGrad",
    .domain = kInternalDomain,
    .doc = "dx of ConvTranspose from dy, w and the shape of x; attributes of the ConvTranspose.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kLow,
    .hostInputs = bit(2),
    .inferShape = inferConvTransposeInputGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = flopsOfConvTransposeInputGrad,
    .layout = {.inputs = bit(0), .outputs = bit(0), .gains = true},
};

}  // namespace stepscope::ops
