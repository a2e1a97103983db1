#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kBitwiseAndOp{
    .name = "BitwiseAnd",
    .doc = "y = a & b",
    .inferShape = binary,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
