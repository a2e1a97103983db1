#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferEyeLikeShape(ShapeContext& c) {
  const std::int64_t wish = c.attrs().integer("dtype", static_cast<std::int64_t>(c.inputDType(0)));
  const auto dtype = wish >= 0 && wish < 256 ? dtypeFromOnnx(static_cast<int>(wish)) : std::nullopt;
  if (!dtype) return c.error("dtype " + std::to_string(wish) + " is not a type of this engine");
  const std::optional<Shape> shape = c.inputShape(0);
  if (shape && shape->size() != 2) return c.error("shape " + shapeText(*shape) + "; expected a matrix");
  c.setOutput(0, *dtype, shape);
  return {};
}

}  // namespace

constexpr OpDef kEyeLikeOp{
    .name = "EyeLike",
    .sinceVersion = 9,
    .doc = "Ones on diagonal k of a matrix with the shape of the input, zeros elsewhere.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferEyeLikeShape,
    .noGradientReason = "the result depends on the shape alone",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
