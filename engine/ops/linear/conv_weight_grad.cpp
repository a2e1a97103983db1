#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvWeightGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 2, c.inputShape(0)->size());
}

double flopsOfConvWeightGrad(const OpShapes& s) { return convFlops(s.inputs[0], s.outputs[0], s.inputs[0], s.attrs); }

}  // namespace

constexpr OpDef kConvWeightGradOp{
    .name = "ConvWeightGrad",
    .domain = kInternalDomain,
    .doc = "dw of Conv from dy, x and the shape of w; attributes of the Conv.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kLow,
    .hostInputs = bit(2),
    .inferShape = inferConvWeightGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = flopsOfConvWeightGrad,
    .layout = {.inputs = bit(0) | bit(1), .gains = true},
};

}  // namespace stepscope::ops
