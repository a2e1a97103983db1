#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kMaxOp{
    .name = "Max",
    .sinceVersion = 13,
    .doc = "y = largest of the inputs; ties share the gradient evenly",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedBinary<maxDims>,
    .gradient = evenShareGradient,
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
