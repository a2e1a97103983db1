#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kEqualOp{
    .name = "Equal",
    .doc = "y = a == b",
    .inferShape = foldedCompare<equalDims>,
    .noGradientReason = kBoolResult,
};

}  // namespace stepscope::ops
