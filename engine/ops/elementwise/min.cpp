#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kMinOp{
    .name = "Min",
    .sinceVersion = 13,
    .doc = "y = smallest of the inputs; ties share the gradient evenly",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedBinary<minDims>,
    .gradient = evenShareGradient,
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
