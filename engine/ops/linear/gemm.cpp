#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferGemmShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1, 2}));
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (c.rankKnown(i) && c.inputShape(i)->size() != 2)
      return c.error("input " + std::to_string(i) + " has shape " + shapeText(*c.inputShape(i)) + "; expected rank 2");
  if (!c.rankKnown(0) || !c.rankKnown(1)) {
    c.setOutput(0, c.inputDType(0), c.freshShape(0, 2));
    return {};
  }
  const Shape a = *c.inputShape(0), b = *c.inputShape(1);
  const bool transA = c.attrs().integer("transA", 0) != 0, transB = c.attrs().integer("transB", 0) != 0;
  SS_TRY(c.unify(a[transA ? 0 : 1], b[transB ? 1 : 0], "inner extents of the matrix product"));
  const Shape y{a[transA ? 1 : 0], b[transB ? 0 : 1]};
  if (c.hasInput(2) && c.rankKnown(2)) {
    const Shape& bias = *c.inputShape(2);
    bool fits = bias.size() <= 2;
    for (std::size_t i = 0; i < bias.size() && fits; ++i) {
      const Dim& extent = bias[bias.size() - 1 - i];
      const Dim& target = y[1 - i];
      fits = extent == Dim(1) || !extent.known() || !target.known() || extent == target;
    }
    if (!fits) return c.error("C of shape " + shapeText(bias) + " does not broadcast to " + shapeText(y));
  }
  c.setOutput(0, c.inputDType(0), y);
  return {};
}

Status gemmGradient(GradientContext& g) {
  SS_TRY(matMulGradient(g, g.attrs().integer("transA", 0) != 0, g.attrs().integer("transB", 0) != 0,
                        g.attrs().real("alpha", 1.0f)));
  if (g.needs(2)) {
    const float beta = g.attrs().real("beta", 1.0f);
    const ValueId sum = g.reduceTo(g.dy(0), g.x(2));
    g.setGradient(2, beta == 1.0f ? sum : g.mul(sum, beta));
  }
  return {};
}

}  // namespace

constexpr OpDef kGemmOp{
    .name = "Gemm",
    .sinceVersion = 13,
    .doc = "y = alpha · op(a) · op(b) + beta · c; c is optional and broadcasts to y.",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferGemmShape,
    .gradient = gemmGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
