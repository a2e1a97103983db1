#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kOrOp{
    .name = "Or",
    .doc = "y = a or b",
    .inferShape = foldedLogical<orDims>,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
