#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kXorOp{
    .name = "Xor",
    .doc = "y = a xor b",
    .inferShape = foldedLogical<xorDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
