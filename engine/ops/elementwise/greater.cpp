#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kGreaterOp{
    .name = "Greater",
    .doc = "y = a > b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = foldedCompare<greaterDims>,
    .noGradientReason = kBoolResult,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
