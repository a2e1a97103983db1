#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferRandomNormalShape(ShapeContext& c) { return randomFromShape(c); }

}  // namespace

extern constexpr OpDef kRandomNormalOp{
    .name = "RandomNormal",
    .doc = "y ~ N(mean, scale^2), of attributes shape and dtype; attribute seed is mixed into the key",
    .inputs = {0, 0},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferRandomNormalShape,
    .noGradientReason = kRandomDraw,
    .random = true,
};

}  // namespace stepscope::ops
