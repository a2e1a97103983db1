#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSequenceEmptyShape(ShapeContext& c) {
  const std::int64_t wish = c.attrs().integer("dtype", static_cast<std::int64_t>(DType::kF32));
  const auto dtype = wish >= 0 && wish < 256 ? dtypeFromOnnx(static_cast<int>(wish)) : std::nullopt;
  if (!dtype) return c.error("dtype " + std::to_string(wish) + " is not a type of this engine");
  c.setOutputType(0, {ValueKind::kSequence, *dtype, std::nullopt});
  return {};
}

}  // namespace

constexpr OpDef kSequenceEmptyOp{
    .name = "SequenceEmpty",
    .sinceVersion = 11,
    .doc = "A sequence without elements.",
    .inputs = {0, 0},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSequenceEmptyShape,
    .noGradientReason = "no inputs",
    .sequences = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
