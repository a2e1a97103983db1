#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvTransposeWeightGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 2, c.inputShape(0)->size());
}

double flopsOfConvTransposeWeightGrad(const OpShapes& s) { return convFlops(s.inputs[1], s.outputs[0]); }

}  // namespace

constexpr OpDef kConvTransposeWeightGradOp{
    .name = "ConvTransposeWeightGrad",
    .domain = kInternalDomain,
    .doc = "dw of ConvTranspose from dy, x and the shape of w; attributes of the ConvTranspose.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kLow,
    .hostInputs = bit(2),
    .inferShape = inferConvTransposeWeightGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = flopsOfConvTransposeWeightGrad,
    .layout = {.inputs = bit(0) | bit(1), .gains = true},
};

}  // namespace stepscope::ops
