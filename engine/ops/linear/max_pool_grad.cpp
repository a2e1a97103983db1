#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferMaxPoolGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 2, c.inputShape(0)->size());
}

}  // namespace

constexpr OpDef kMaxPoolGradOp{
    .name = "MaxPoolGrad",
    .domain = kInternalDomain,
    .doc = "dx[indices[o]] += dy[o]; inputs dy, the indices of MaxPool, the shape of x; attribute storage_order.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = bit(2),
    .inferShape = inferMaxPoolGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .layout = {.inputs = bit(0) | bit(1), .outputs = bit(0), .together = true},
};

}  // namespace stepscope::ops
