#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kGreaterOp{
    .name = "Greater",
    .doc = "y = a > b",
    .inferShape = foldedCompare<greaterDims>,
    .noGradientReason = kBoolResult,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
