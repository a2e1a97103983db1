#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Status inferRandomUniformShape(ShapeContext& c) { return randomFromShape(c); }

}  // namespace

extern constexpr OpDef kRandomUniformOp{
    .name = "RandomUniform",
    .doc = "y ~ U[low, high), of attributes shape and dtype; attribute seed is mixed into the key",
    .inputs = {0, 0},
    .outputs = {1, 1},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferRandomUniformShape,
    .noGradientReason = kRandomDraw,
    .random = true,
};

}  // namespace stepscope::ops
