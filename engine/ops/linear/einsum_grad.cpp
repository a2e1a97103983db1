#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/einsum_rule.h"
#include "engine/ops/linear/ops.h"
#include "kernels/einsum_equation.h"

namespace stepscope::ops {
namespace {

Status inferEinsumGradShape(ShapeContext& c) {
  const std::size_t count = c.inputCount() - 1;
  const auto equation = parseEinsum(c.attrs().text("equation", ""), count);
  if (!equation) return c.error(equation.error().message);
  const std::int64_t operand = c.attrs().integer("operand", 0);
  if (operand < 0 || static_cast<std::size_t>(operand) >= count)
    return c.error("attribute 'operand' is " + std::to_string(operand) + "; expected 0.." + std::to_string(count - 1));
  return inferFromShapeInput(c, 1, equation->operands[static_cast<std::size_t>(operand)].letters.size());
}

}  // namespace

constexpr OpDef kEinsumGradOp{
    .name = "EinsumGrad",
    .domain = kInternalDomain,
    .doc =
        "dx of operand `operand` of Einsum where no swapped equation gives it (diagonals, letters summed alone); inputs dy, "
        "the "
        "shape of x, the other operands.",
    .inputs = {2, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = bit(1),
    .inferShape = inferEinsumGradShape,
    .noGradientReason = "gradient of a gradient",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = einsumGradFlops,
};

}  // namespace stepscope::ops
