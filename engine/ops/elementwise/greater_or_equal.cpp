#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kGreaterOrEqualOp{
    .name = "GreaterOrEqual",
    .sinceVersion = 16,
    .doc = "y = a >= b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedCompare<greaterOrEqualDims>,
    .noGradientReason = kBoolResult,
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
