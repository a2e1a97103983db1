#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferStringConcatShape(ShapeContext& c) {
  SS_TRY(requireType(c, 0, DType::kString));
  return binary(c);
}

}  // namespace

extern constexpr OpDef kStringConcatOp{
    .name = "StringConcat",
    .sinceVersion = 20,
    .doc = "y = a followed by b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferStringConcatShape,
    .noGradientReason = "text",
};

}  // namespace stepscope::ops
