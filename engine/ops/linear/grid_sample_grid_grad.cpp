#include "engine/ops/linear/ops.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {
namespace {

Status inferGridSampleGridGradShape(ShapeContext& c) {
  c.setOutput(0, c.inputDType(2), c.inputShape(2));
  return {};
}

}  // namespace

constexpr OpDef kGridSampleGridGradOp{
    .name = "GridSampleGridGrad",
    .domain = kInternalDomain,
    .doc = "dgrid of GridSample: slope of x at the positions, times dy. Inputs dy, x, grid; attributes of the GridSample.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferGridSampleGridGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
