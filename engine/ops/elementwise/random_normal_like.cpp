#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferRandomNormalLikeShape(ShapeContext& c) { return randomLikeInput0(c); }

}  // namespace

extern constexpr OpDef kRandomNormalLikeOp{
    .name = "RandomNormalLike",
    .doc = "y ~ N(mean, scale^2), shaped like x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferRandomNormalLikeShape,
    .noGradientReason = kRandomDraw,
    .random = true,
};

}  // namespace stepscope::ops
