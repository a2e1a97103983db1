#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferReduceMaxShape(ShapeContext& c) { return reduction_rules::inferReduceContents(c, Dim::max); }

}  // namespace

extern const OpDef kReduceMaxOp{
    .name = "ReduceMax",
    .sinceVersion = 20,
    .doc = "y = maximum of x over `axes`; NaN wins. Tied elements share the gradient evenly.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferReduceMaxShape,
    .gradient = reduction_rules::extremeGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
};

}  // namespace stepscope::ops
