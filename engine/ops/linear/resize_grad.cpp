#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferResizeGradShape(ShapeContext& c) {
  if (!c.rankKnown(0)) return c.error("dy has unknown rank");
  return inferFromShapeInput(c, 1, c.inputShape(0)->size());
}

}  // namespace

constexpr OpDef kResizeGradOp{
    .name = "ResizeGrad",
    .domain = kInternalDomain,
    .doc = "dx of Resize: the transposed sampling. Inputs dy, the shape of x, roi, scales, sizes; attributes of the Resize.",
    .inputs = {2, 5},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = bit(1) | bit(2) | bit(3) | bit(4),
    .inferShape = inferResizeGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .layout = {.inputs = bit(0), .outputs = bit(0), .together = true, .channels = ChannelRule::kSampled},
};

}  // namespace stepscope::ops
