#include "engine/ops/linear/ops.h"
#include "engine/ops/linear/recurrent_rule.h"

namespace stepscope::ops {
namespace {

Status inferRnnShape(ShapeContext& c) { return inferRecurrent(c, 1); }
Status rnnGradient(GradientContext& g) { return recurrentGradient(g, "RNNGrad", 1); }

}  // namespace

constexpr OpDef kRNNOp{
    .name = "RNN",
    .sinceVersion = 14,
    .doc = "One simple recurrent layer over a sequence: h' = f(W x + R h + b); optional lengths, clip, both directions.",
    .inputs = {3, 6},
    .outputs = {0, 2},
    .category = OpCategory::kOther,
    .precision = Precision::kLow,
    .hostInputs = bit(4),
    .inferShape = inferRnnShape,
    .gradient = rnnGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3) | bit(5),
    .differentiableOutputs = bit(0) | bit(1),
    .recompute = Recompute::kCostly,
    .flops = recurrentFlops,
};

}  // namespace stepscope::ops
