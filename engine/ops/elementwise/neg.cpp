#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferNegShape(ShapeContext& c) {
  SS_TRY(shape_rules::sameAsInput0(c));
  foldContents(c, negDim);
  return {};
}

Status negGradient(GradientContext& g) {
  g.setGradient(0, g.neg(g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kNegOp{
    .name = "Neg",
    .sinceVersion = 13,
    .doc = "y = -x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferNegShape,
    .gradient = negGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
