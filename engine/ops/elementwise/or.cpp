#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kOrOp{
    .name = "Or",
    .sinceVersion = 7,
    .doc = "y = a or b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedLogical<orDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
};

}  // namespace stepscope::ops
