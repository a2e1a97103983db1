#include "engine/ops/linear/ops.h"
#include "engine/ops/linear/recurrent_rule.h"

namespace stepscope::ops {
namespace {

Status inferGruShape(ShapeContext& c) { return inferRecurrent(c, 3); }
Status gruGradient(GradientContext& g) { return recurrentGradient(g, "GRUGrad", 3); }

}  // namespace

constexpr OpDef kGRUOp{
    .name = "GRU",
    .sinceVersion = 14,
    .doc = "One layer of gated recurrent units over a sequence; gates z, r, h; optional lengths, clip, both directions.",
    .inputs = {3, 6},
    .outputs = {0, 4},
    .category = OpCategory::kOther,
    .precision = Precision::kLow,
    .hostInputs = bit(4),
    .inferShape = inferGruShape,
    .gradient = gruGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3) | bit(5),
    .differentiableOutputs = bit(0) | bit(1),
    .recompute = Recompute::kCostly,
    .flops = recurrentFlops,
};

}  // namespace stepscope::ops
