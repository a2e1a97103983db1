#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferReluShape(ShapeContext& c) {
  SS_TRY(shape_rules::sameAsInput0(c));
  foldContents(c, reluDim);
  return {};
}

Status reluGradient(GradientContext& g) {
  g.setGradient(0, dropWhere(g, g.op("LessOrEqual", {g.y(0), g.scalar(0, g.y(0))}), g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kReluOp{
    .name = "Relu",
    .sinceVersion = 14,
    .doc = "y = max(x, 0); slope 0 at 0, NaN passes",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferReluShape,
    .gradient = reluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
