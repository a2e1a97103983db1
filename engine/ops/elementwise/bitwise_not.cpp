#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kBitwiseNotOp{
    .name = "BitwiseNot",
    .sinceVersion = 18,
    .doc = "y = ~x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = shape_rules::sameAsInput0,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
