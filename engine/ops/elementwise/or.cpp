#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kOrOp{
    .name = "Or",
    .doc = "y = a or b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = foldedLogical<orDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
