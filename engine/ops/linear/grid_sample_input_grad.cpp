#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferGridSampleInputGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 2, c.inputShape(0)->size());
}

}  // namespace

constexpr OpDef kGridSampleInputGradOp{
    .name = "GridSampleInputGrad",
    .domain = kInternalDomain,
    .doc =
        "dx of GridSample: dy spread to where it was sampled. Inputs dy, grid, the shape of x; attributes of the "
        "GridSample.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = bit(2),
    .inferShape = inferGridSampleInputGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
