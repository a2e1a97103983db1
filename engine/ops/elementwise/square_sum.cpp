#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferSquareSumShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  c.setOutput(0, sumType(c.inputDType(0)), Shape{});
  return {};
}

Status squareSumGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.mul(g.x(0), 2.0), g.castLike(g.dy(0), g.x(0))));
  return {};
}

}  // namespace

extern constexpr OpDef kSquareSumOp{
    .name = "SquareSum",
    .domain = kInternalDomain,
    .doc = "s = sum of x^2 over all elements, accumulated in double; float32 at least",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferSquareSumShape,
    .gradient = squareSumGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
