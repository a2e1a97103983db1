#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kBitwiseXorOp{
    .name = "BitwiseXor",
    .doc = "y = a ^ b, bit by bit",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = binary,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
