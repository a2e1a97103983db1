#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kEqualOp{
    .name = "Equal",
    .doc = "y = a == b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .inferShape = foldedCompare<equalDims>,
    .noGradientReason = kBoolResult,
};

}  // namespace stepscope::ops
