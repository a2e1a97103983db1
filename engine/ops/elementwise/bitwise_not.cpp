#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kBitwiseNotOp{
    .name = "BitwiseNot",
    .doc = "y = ~x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .inferShape = shape_rules::sameAsInput0,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0),
};

}  // namespace stepscope::ops
