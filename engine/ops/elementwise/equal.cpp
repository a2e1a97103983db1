#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kEqualOp{
    .name = "Equal",
    .sinceVersion = 19,
    .doc = "y = a == b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedCompare<equalDims>,
    .noGradientReason = kBoolResult,
    .pointwise = true,
};

}  // namespace stepscope::ops
