#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvIntegerShape(ShapeContext& c) { return inferConv(c, 0, 1, DType::kI32); }
double flopsOfConvInteger(const OpShapes& s) { return convFlops(s.outputs[0], s.inputs[1]); }

}  // namespace

constexpr OpDef kConvIntegerOp{
    .name = "ConvInteger",
    .sinceVersion = 10,
    .doc = "Conv of x - x_zero_point with w - w_zero_point in int32.",
    .inputs = {2, 4},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferConvIntegerShape,
    .noGradientReason = "integer result",
    .recompute = Recompute::kCostly,
    .flops = flopsOfConvInteger,
};

}  // namespace stepscope::ops
