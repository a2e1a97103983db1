#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kIsNaNOp{
    .name = "IsNaN",
    .sinceVersion = 20,
    .doc = "y = x is NaN",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = shape_rules::boolLikeInput0,
    .noGradientReason = kBoolResult,
    .pointwise = true,
};

}  // namespace stepscope::ops
