#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kGreaterOrEqualOp{
    .name = "GreaterOrEqual",
    .doc = "y = a >= b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = foldedCompare<greaterOrEqualDims>,
    .noGradientReason = kBoolResult,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
