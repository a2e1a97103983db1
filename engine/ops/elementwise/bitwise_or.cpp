#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kBitwiseOrOp{
    .name = "BitwiseOr",
    .doc = "y = a | b",
    .inferShape = binary,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
