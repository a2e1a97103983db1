#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferCastLikeShape(ShapeContext& c) { return castContents(c, c.inputDType(1)); }

Status castLikeGradient(GradientContext& g) {
  g.setGradient(0, g.castLike(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kCastLikeOp{
    .name = "CastLike",
    .sinceVersion = 21,
    .doc = "y = x in the type of the second input; floats to integers truncate",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferCastLikeShape,
    .gradient = castLikeGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
