#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kRoundOp{
    .name = "Round",
    .doc = "y = nearest integer, halves to even",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .inferShape = floatUnary,
    .noGradientReason = kPiecewiseConstant,
    .inPlaceInputs = bit(0),
};

}  // namespace stepscope::ops
