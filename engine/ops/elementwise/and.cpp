#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kAndOp{
    .name = "And",
    .sinceVersion = 7,
    .doc = "y = a and b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedLogical<andDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
