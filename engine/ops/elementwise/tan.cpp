#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status tanGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.add(g.mul(g.y(0), g.y(0)), 1.0)));
  return {};
}

}  // namespace

extern constexpr OpDef kTanOp{
    .name = "Tan",
    .sinceVersion = 7,
    .doc = "y = tan(x); slope 1 + y^2",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = tanGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
