#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferOptionalGetElementShape(ShapeContext& c) {
  ValueType type = c.inputType(0);
  if (type.kind == ValueKind::kOptional) {
    type.kind = type.optionalOfSequence ? ValueKind::kSequence : ValueKind::kTensor;
    type.optionalOfSequence = false;
  }
  c.setOutputType(0, type);
  return {};
}

}  // namespace

constexpr OpDef kOptionalGetElementOp{
    .name = "OptionalGetElement",
    .sinceVersion = 18,
    .doc = "The value that an optional holds; a plain value is passed through.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferOptionalGetElementShape,
    .noGradientReason = "optionals are lowered to plain values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
