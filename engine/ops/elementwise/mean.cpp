#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status meanGradient(GradientContext& g) {
  const std::size_t count = g.node().inputs.size();
  const ValueId share = g.div(g.dy(0), g.scalar(static_cast<double>(count), g.dy(0)));
  for (std::size_t i = 0; i < count; ++i)
    if (g.needs(i)) g.setGradient(i, g.reduceTo(share, g.x(i)));
  return {};
}

}  // namespace

extern constexpr OpDef kMeanOp{
    .name = "Mean",
    .sinceVersion = 13,
    .doc = "y = mean of the inputs",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = floatBroadcast,
    .gradient = meanGradient,
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
