#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferRandomUniformLikeShape(ShapeContext& c) { return randomLikeInput0(c); }

}  // namespace

extern constexpr OpDef kRandomUniformLikeOp{
    .name = "RandomUniformLike",
    .doc = "y ~ U[low, high), shaped like x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferRandomUniformLikeShape,
    .noGradientReason = kRandomDraw,
    .random = true,
};

}  // namespace stepscope::ops
