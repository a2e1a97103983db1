#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferStochasticRoundShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  SS_ASSIGN(const DType dtype, attributeType(c, "to", DType::kUndefined));
  if (!isLow(dtype)) return c.error("attribute to is " + std::string(dtypeName(dtype)) + "; float16 or bfloat16");
  c.setOutput(0, dtype, c.inputShape(0));
  return {};
}

}  // namespace

extern constexpr OpDef kStochasticRoundOp{
    .name = "StochasticRound",
    .domain = kInternalDomain,
    .doc =
        "y = one of the two neighbours of x in type `to`, the farther from 0 when uniform01(key, element) is below the part "
        "of the way to it; the mean of many is x. Attribute stream tells nodes apart",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferStochasticRoundShape,
    .noGradientReason = kRandomDraw,
    .recompute = Recompute::kNever,
    .random = true,
};

}  // namespace stepscope::ops
