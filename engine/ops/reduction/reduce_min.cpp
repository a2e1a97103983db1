#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferReduceMinShape(ShapeContext& c) { return reduction_rules::inferReduceContents(c, Dim::min); }

}  // namespace

extern const OpDef kReduceMinOp{
    .name = "ReduceMin",
    .sinceVersion = 20,
    .doc = "y = minimum of x over `axes`; NaN wins. Tied elements share the gradient evenly.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferReduceMinShape,
    .gradient = reduction_rules::extremeGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
};

}  // namespace stepscope::ops
