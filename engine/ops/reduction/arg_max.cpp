#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {

extern const OpDef kArgMaxOp{
    .name = "ArgMax",
    .sinceVersion = 13,
    .doc = "Index of the maximum along `axis` (0), the first of equal ones, the last with select_last_index; NaN wins.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = reduction_rules::inferArgReduce,
    .noGradientReason = "integer result",
    .flops = reduction_rules::flopsPerElement<1>,
};

}  // namespace stepscope::ops
