#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kGreaterOp{
    .name = "Greater",
    .sinceVersion = 13,
    .doc = "y = a > b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedCompare<greaterDims>,
    .noGradientReason = kBoolResult,
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
