#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferEpilogueProductShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1, 2, 3}));
  const std::string activation = c.attrs().text("activation", ""), sums = c.attrs().text("sums", "");
  if (!activation.empty() && activation != "Gelu" && activation != "GeluGrad")
    return c.error("attribute activation is '" + activation + "'; expected Gelu or GeluGrad");
  if (!sums.empty() && sums != "a" && sums != "b") return c.error("attribute sums is '" + sums + "'; expected a or b");
  if ((activation == "GeluGrad") != c.hasInput(3))
    return c.error(c.hasInput(3) ? "input 3 without activation GeluGrad" : "activation GeluGrad without input 3");
  if (!sums.empty() && !activation.empty()) return c.error("attributes activation and sums; expected one of them");
  if (c.hasOutput(1) && sums.empty() && activation != "Gelu") return c.error("output 1 without activation Gelu or sums");
  if (!c.hasOutput(1) && !sums.empty()) return c.error("attribute sums without output 1");
  if (!c.rankKnown(0) || !c.rankKnown(1)) {
    for (const std::size_t i : {0u, 1u})
      if (c.hasOutput(i)) c.setOutput(i, c.inputDType(0), std::nullopt);
    return {};
  }
  SS_ASSIGN(const Shape left, seenShape(c, 0, "viewA", "permA"));
  SS_ASSIGN(const Shape right, seenShape(c, 1, "viewB", "permB"));
  if (left.size() < 2 || right.size() < 2)
    return c.error("product of " + shapeText(left) + " and " + shapeText(right) + "; expected matrices");
  SS_ASSIGN(const Shape y, productShape(c, left, right));
  if (c.hasInput(2) && c.rankKnown(2)) {
    const Shape& bias = *c.inputShape(2);
    if (bias.size() != 1) return c.error("bias has shape " + shapeText(bias) + "; expected one extent, that of the columns");
    SS_TRY(c.unify(bias[0], right.back(), "bias and columns of the product"));
  }
  SS_ASSIGN(Shape stored, permutedShape(c, y, "permY"));
  if (c.hasInput(3) && c.rankKnown(3))
    SS_TRY(c.unifyShapes(*c.inputShape(3), stored, "what Gelu was applied to and result"));
  if (c.hasOutput(1))
    c.setOutput(1, c.inputDType(0), sums.empty() ? stored : Shape{sums == "a" ? left[left.size() - 2] : right.back()});
  c.setOutput(0, c.inputDType(0), std::move(stored));
  return {};
}

}  // namespace

constexpr OpDef kEpilogueProductOp{
    .name = "EpilogueProduct",
    .domain = kInternalDomain,
    .doc =
        "a, b, bias?, x? → y, second?: a matrix product with the attributes of Product and what libraries compute "
        "while they write it. v = (alpha · a^permA · b^permB + bias)^permY; y is v, its Gelu in the form with tanh "
        "(activation "
        "Gelu; second is v), or v times the slope of this Gelu at x (GeluGrad). With attribute sums second is the sums of a "
        "or b along the axis that the product sums over. Written by pass library_epilogues.",
    .inputs = {2, 4},
    .outputs = {1, 2},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferEpilogueProductShape,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
