#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kLessOp{
    .name = "Less",
    .doc = "y = a < b",
    .inferShape = foldedCompare<lessDims>,
    .noGradientReason = kBoolResult,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
