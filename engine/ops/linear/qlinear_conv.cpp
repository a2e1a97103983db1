#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferQlinearConvShape(ShapeContext& c) { return inferConv(c, 0, 3, c.inputDType(7)); }
double flopsOfQlinearConv(const OpShapes& s) { return convFlops(s.outputs[0], s.inputs[3]); }

}  // namespace

constexpr OpDef kQLinearConvOp{
    .name = "QLinearConv",
    .sinceVersion = 10,
    .doc = "y = quantize(Conv(dequantize(x), dequantize(w)) + bias): 8-bit operands and result with scales and zero points.",
    .inputs = {8, 9},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferQlinearConvShape,
    .noGradientReason = "integer result",
    .recompute = Recompute::kCostly,
    .flops = flopsOfQlinearConv,
};

}  // namespace stepscope::ops
