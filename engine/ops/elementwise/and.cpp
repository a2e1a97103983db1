#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kAndOp{
    .name = "And",
    .doc = "y = a and b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = foldedLogical<andDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
