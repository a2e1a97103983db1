#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kXorOp{
    .name = "Xor",
    .sinceVersion = 7,
    .doc = "y = a xor b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedLogical<xorDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
};

}  // namespace stepscope::ops
