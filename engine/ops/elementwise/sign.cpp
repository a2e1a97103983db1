#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferSignShape(ShapeContext& c) {
  SS_TRY(shape_rules::sameAsInput0(c));
  foldContents(c, signDim);
  return {};
}

}  // namespace

extern constexpr OpDef kSignOp{
    .name = "Sign",
    .sinceVersion = 13,
    .doc = "y = -1, 0 or 1",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSignShape,
    .noGradientReason = kPiecewiseConstant,
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
