#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kBitwiseXorOp{
    .name = "BitwiseXor",
    .sinceVersion = 18,
    .doc = "y = a ^ b, bit by bit",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = binary,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
};

}  // namespace stepscope::ops
