#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kXorOp{
    .name = "Xor",
    .doc = "y = a xor b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = foldedLogical<xorDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
