#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferOptionalShape(ShapeContext& c) {
  ValueType type = c.hasInput(0) ? c.inputType(0) : ValueType{};
  type.optionalOfSequence = type.kind == ValueKind::kSequence;
  type.kind = ValueKind::kOptional;
  c.setOutputType(0, type);
  return {};
}

}  // namespace

constexpr OpDef kOptionalOp{
    .name = "Optional",
    .sinceVersion = 15,
    .doc = "An optional that holds the input, or nothing.",
    .inputs = {0, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferOptionalShape,
    .noGradientReason = "optionals are lowered to plain values before the gradient",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
