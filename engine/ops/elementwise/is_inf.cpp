#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kIsInfOp{
    .name = "IsInf",
    .sinceVersion = 20,
    .doc = "y = x is an infinity; attributes detect_negative, detect_positive",
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
