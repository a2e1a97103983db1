#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status reciprocalGradient(GradientContext& g) {
  g.setGradient(0, g.neg(g.mul(g.dy(0), g.mul(g.y(0), g.y(0)))));
  return {};
}

}  // namespace

extern constexpr OpDef kReciprocalOp{
    .name = "Reciprocal",
    .sinceVersion = 13,
    .doc = "y = 1 / x; slope -y^2",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = reciprocalGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
