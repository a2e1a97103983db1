#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferNotShape(ShapeContext& c) {
  SS_TRY(requireType(c, 0, DType::kBool));
  SS_TRY(shape_rules::boolLikeInput0(c));
  foldContents(c, notDim);
  return {};
}

}  // namespace

extern constexpr OpDef kNotOp{
    .name = "Not",
    .doc = "y = not x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferNotShape,
    .noGradientReason = kBoolResult,
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
