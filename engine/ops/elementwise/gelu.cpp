#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferGeluShape(ShapeContext& c) {
  const std::string form = c.attrs().text("approximate", "none");
  if (form != "none" && form != "tanh") return c.error("attribute approximate is '" + form + "'; 'none' or 'tanh'");
  return floatUnary(c);
}

Status geluOpGradient(GradientContext& g) {
  g.setGradient(0, geluGradient(g, g.dy(0), g.x(0), g.attrs().text("approximate", "none") == "tanh"));
  return {};
}

}  // namespace

extern constexpr OpDef kGeluOp{
    .name = "Gelu",
    .sinceVersion = 20,
    .doc = "y = x Phi(x); attribute approximate: \"none\" (erf) or \"tanh\"",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGeluShape,
    .gradient = geluOpGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
