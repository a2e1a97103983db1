#include "engine/ops/linear/ops.h"
#include "engine/ops/linear/recurrent_rule.h"

namespace stepscope::ops {
namespace {

Status inferLstmShape(ShapeContext& c) { return inferRecurrent(c, 4); }
Status lstmGradient(GradientContext& g) { return recurrentGradient(g, "LSTMGrad", 4); }

}  // namespace

constexpr OpDef kLSTMOp{
    .name = "LSTM",
    .sinceVersion = 14,
    .doc =
        "One layer of long short-term memory over a sequence; gates i, o, f, c; optional peepholes, lengths, clip, both "
        "directions.",
    .inputs = {3, 8},
    .outputs = {0, 5},
    .category = OpCategory::kOther,
    .precision = Precision::kLow,
    .hostInputs = bit(4),
    .inferShape = inferLstmShape,
    .gradient = lstmGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3) | bit(5) | bit(6) | bit(7),
    .differentiableOutputs = bit(0) | bit(1) | bit(2),
    .recompute = Recompute::kCostly,
    .flops = recurrentFlops,
};

}  // namespace stepscope::ops
