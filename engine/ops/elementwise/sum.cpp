#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status sumGradient(GradientContext& g) {
  for (std::size_t i = 0; i < g.node().inputs.size(); ++i)
    if (g.needs(i)) g.setGradient(i, g.reduceTo(g.dy(0), g.x(i)));
  return {};
}

}  // namespace

extern constexpr OpDef kSumOp{
    .name = "Sum",
    .sinceVersion = 13,
    .doc = "y = sum of the inputs",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = foldedBinary<addDims>,
    .gradient = sumGradient,
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
