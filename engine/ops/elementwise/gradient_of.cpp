#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferGradientOfShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  c.setOutputType(0, c.inputType(0));
  return {};
}

}  // namespace

extern constexpr OpDef kGradientOfOp{
    .name = "GradientOf",
    .domain = kInternalDomain,
    .doc = "stands for d loss / d y in the nodes that compute a CustomGradient from it; no constant, whatever y is",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGradientOfShape,
    .noGradientReason = "it stands for a gradient",
    .inPlaceInputs = bit(0),
    .view = true,
};

}  // namespace stepscope::ops
