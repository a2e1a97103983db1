#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kIsNaNOp{
    .name = "IsNaN",
    .doc = "y = x is NaN",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .inferShape = shape_rules::boolLikeInput0,
    .noGradientReason = kBoolResult,
};

}  // namespace stepscope::ops
