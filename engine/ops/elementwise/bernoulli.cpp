#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferBernoulliShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  SS_ASSIGN(const DType dtype, attributeType(c, "dtype", c.inputDType(0)));
  if (dtype == DType::kString) return c.error("attribute dtype is string; a numeric type or bool");
  c.setOutput(0, dtype, c.inputShape(0));
  return {};
}

}  // namespace

extern constexpr OpDef kBernoulliOp{
    .name = "Bernoulli",
    .sinceVersion = 15,
    .doc = "y = uniform01(key, element) < x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferBernoulliShape,
    .noGradientReason = kRandomDraw,
    .random = true,
};

}  // namespace stepscope::ops
