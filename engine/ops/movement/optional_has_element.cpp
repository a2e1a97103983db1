#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferOptionalHasElementShape(ShapeContext& c) {
  c.setOutput(0, DType::kBool, Shape{});
  return {};
}

}  // namespace

constexpr OpDef kOptionalHasElementOp{
    .name = "OptionalHasElement",
    .sinceVersion = 18,
    .doc = "Whether an optional holds a value; true for a plain value, false for an absent input.",
    .inputs = {0, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferOptionalHasElementShape,
    .noGradientReason = "bool result",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
