#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kFloorOp{
    .name = "Floor",
    .sinceVersion = 13,
    .doc = "y = largest integer <= x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .noGradientReason = kPiecewiseConstant,
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
