#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {

extern const OpDef kHardmaxOp{
    .name = "Hardmax",
    .sinceVersion = 13,
    .doc = "1 at the first maximum along `axis` (-1), 0 elsewhere.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = reduction_rules::inferAlongAxis,
    .noGradientReason = "piecewise constant: zero almost everywhere",
    .inPlaceInputs = bit(0),
};

}  // namespace stepscope::ops
