#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferRoiAlignGradShape(ShapeContext& c) { return inferFromShapeInput(c, 3, 4); }

}  // namespace

constexpr OpDef kRoiAlignGradOp{
    .name = "RoiAlignGrad",
    .domain = kInternalDomain,
    .doc =
        "dx of RoiAlign in mode avg: dy spread over the points. Inputs dy, rois, batch indices, the shape of x; attributes "
        "of the RoiAlign.",
    .inputs = {4, 4},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = bit(3),
    .inferShape = inferRoiAlignGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
