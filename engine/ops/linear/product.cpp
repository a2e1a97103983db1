#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferProductShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1, 2, 3}));
  if (!c.rankKnown(0) || !c.rankKnown(1)) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  SS_ASSIGN(const Shape left, seenShape(c, 0, "viewA", "permA"));
  SS_ASSIGN(const Shape right, seenShape(c, 1, "viewB", "permB"));
  SS_ASSIGN(const Shape y, productShape(c, left, right));
  if (c.hasInput(2) && c.rankKnown(2)) {
    const Shape& bias = *c.inputShape(2);
    if (bias.size() != 1 || right.size() < 2)
      return c.error("bias has shape " + shapeText(bias) + "; expected one extent, that of the columns");
    SS_TRY(c.unify(bias[0], right.back(), "bias and columns of the product"));
  }
  SS_ASSIGN(Shape stored, permutedShape(c, y, "permY"));
  if (c.hasInput(3) && c.rankKnown(3)) SS_TRY(c.unifyShapes(*c.inputShape(3), stored, "addend and result"));
  if (const std::string activation = c.attrs().text("activation", "Relu"); activation != "Relu")
    return c.error("attribute activation is '" + activation + "'; expected Relu");
  c.setOutput(0, c.inputDType(0), std::move(stored));
  return {};
}

}  // namespace

constexpr OpDef kProductOp{
    .name = "Product",
    .domain = kInternalDomain,
    .doc =
        "y = activation((alpha · a^permA · b^permB + bias)^permY + addend): a matrix product that reads its operands and "
        "writes its "
        "result transposed, leading axes broadcast; bias? [columns], addend? [as y]; viewA, viewB: offset, extents and "
        "strides of the part of a larger tensor that is the operand. Written by passes after the gradient.",
    .inputs = {2, 4},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferProductShape,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(3),
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
