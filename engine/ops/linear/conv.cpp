#include <numeric>

#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1, 2}));
  return inferConv(c, 0, 1, c.inputDType(0));
}

Status convGradient(GradientContext& g) {
  const ValueId dy = g.dy(0);
  if (g.needs(0)) g.setGradient(0, g.internal("ConvInputGrad", {dy, g.x(1), g.shapeOf(g.x(0))}, g.attrs()));
  if (g.needs(1)) g.setGradient(1, g.internal("ConvWeightGrad", {dy, g.x(0), g.shapeOf(g.x(1))}, g.attrs()));
  if (g.needs(2)) {
    SS_ASSIGN(const std::size_t rank, g.rank(dy));
    std::vector<std::int64_t> axes(rank - 1);
    std::iota(axes.begin() + 1, axes.end(), 2);
    g.setGradient(2, g.reduceSum(dy, axes, false));
  }
  return {};
}

double flopsOfConv(const OpShapes& s) { return convFlops(s.outputs[0], s.inputs[1], s.outputs[0], s.attrs); }

}  // namespace

constexpr OpDef kConvOp{
    .name = "Conv",
    .sinceVersion = 11,
    .doc = "y[n, m, o] = b[m] + sum_{c, t} x[n, c, o*stride - pad + t*dilation] · w[m, c, t], in groups of channels.",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferConvShape,
    .gradient = convGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .recompute = Recompute::kCostly,
    .flops = flopsOfConv,
    .layout = {.inputs = bit(0), .outputs = bit(0), .gains = true},
};

}  // namespace stepscope::ops
