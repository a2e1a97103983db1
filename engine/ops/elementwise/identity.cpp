#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferIdentityShape(ShapeContext& c) {
  c.setOutputType(0, c.inputType(0));
  if (const auto contents = c.contents(0)) c.setContents(0, *contents);
  return {};
}

Status identityGradient(GradientContext& g) {
  g.setGradient(0, g.dy(0));
  return {};
}

}  // namespace

extern constexpr OpDef kIdentityOp{
    .name = "Identity",
    .sinceVersion = 21,
    .doc = "y = x, the same memory",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferIdentityShape,
    .gradient = identityGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .view = true,
};

}  // namespace stepscope::ops
