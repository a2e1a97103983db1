#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status softplusGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.op("Sigmoid", {g.x(0)})));
  return {};
}

}  // namespace

extern constexpr OpDef kSoftplusOp{
    .name = "Softplus",
    .doc = "y = ln(1 + exp(x)), without overflow; slope sigmoid(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = softplusGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
