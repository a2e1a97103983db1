#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferGeluGradShape(ShapeContext& c) {
  SS_TRY(requireSameTypes(c, 0));
  const std::string form = c.attrs().text("approximate", "none");
  if (form != "none" && form != "tanh") return c.error("attribute approximate is '" + form + "'; 'none' or 'tanh'");
  if (c.rankKnown(0) && c.rankKnown(1)) SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(1), "dy and x"));
  return shape_rules::sameAsInput0(c);
}

}  // namespace

extern constexpr OpDef kGeluGradOp{
    .name = "GeluGrad",
    .domain = kInternalDomain,
    .doc = "dy, x → dx = dy (Phi(x) + x phi(x)), or the slope of the form with tanh; attribute approximate as in Gelu",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGeluGradShape,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
