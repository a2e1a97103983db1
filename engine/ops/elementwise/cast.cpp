#include "engine/ops/elementwise/common.h"
#include "kernels/onnx_type_text.h"

namespace stepscope::ops {
namespace {

Status inferCastShape(ShapeContext& c) {
  const std::int64_t number = c.attrs().integer("to", 0);
  const auto to = dtypeFromOnnx(number >= 0 && number < 256 ? static_cast<int>(number) : 0);
  if (!to)
    return c.error("target type " + onnxTypeText(number) +
                   " of attribute to; expected float32, float64, float16, bfloat16, (u)int8..64, bool or string");
  return castContents(c, *to);
}

Status castGradient(GradientContext& g) {
  g.setGradient(0, g.castLike(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kCastOp{
    .name = "Cast",
    .sinceVersion = 21,
    .doc = "y = x in the type of attribute `to`; floats to integers truncate",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferCastShape,
    .gradient = castGradient,
    .differentiableInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
