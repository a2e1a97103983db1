#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// The exponent when it is one constant number.
std::optional<double> fixedExponent(GradientContext& g) {
  const Tensor* exponent = g.constant(g.x(1));
  if (exponent == nullptr || exponent->elements() != 1) return std::nullopt;
  return elementAsDouble(exponent->view(), 0);
}

// dy b a^(b-1), and 0 where b = 0 whatever a and dy are.
ValueId baseGradient(GradientContext& g, ValueId a, ValueId b) {
  if (const auto fixed = fixedExponent(g)) {
    if (*fixed == 0) return g.zerosLike(g.y(0));
    if (*fixed == 1) return g.mul(g.dy(0), g.scalar(1, a));
    if (*fixed == 2) return g.mul(g.dy(0), g.mul(a, 2.0));
    return g.mul(g.dy(0), g.mul(g.op("Pow", {a, g.scalar(*fixed - 1, a)}), *fixed));
  }
  const ValueId slope = g.mul(g.op("Pow", {a, g.add(b, -1.0)}), b);
  return dropWhere(g, g.op("Equal", {b, g.scalar(0, b)}), g.mul(g.dy(0), slope));
}

Status inferPowShape(ShapeContext& c) {
  SS_TRY(shape_rules::broadcastAll(c));
  if (isInteger(c.inputDType(0)) && isInteger(c.inputDType(1))) foldContents(c, powDims);
  return {};
}

Status powGradient(GradientContext& g) {
  const ValueId a = g.x(0);
  const ValueId b = g.castLike(g.x(1), a);
  if (g.needs(0)) g.setGradient(0, g.reduceTo(baseGradient(g, a, b), a));
  if (g.needs(1)) {  // y ln(a), and 0 where a <= 0
    const ValueId positive = g.op("Greater", {a, g.scalar(0, a)});
    const ValueId logarithm = g.op("Log", {g.where(positive, a, g.scalar(1, a))});
    const ValueId slope = g.mul(g.mul(g.dy(0), g.y(0)), logarithm);
    g.setGradient(1, g.reduceTo(g.castLike(keepWhere(g, positive, slope), g.x(1)), g.x(1)));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kPowOp{
    .name = "Pow",
    .sinceVersion = 15,
    .doc = "y = a ^ b, in the type of a",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferPowShape,
    .gradient = powGradient,
    .differentiableInputs = bit(0) | bit(1),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
