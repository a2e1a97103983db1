#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferFakeQuantShape(ShapeContext& c) {
  for (std::size_t i = 0; i < 3; ++i) SS_TRY(requireFloat(c, i));
  for (std::size_t i = 1; i < 3; ++i)
    if (c.rankKnown(i) && c.inputShape(i)->size() > 1)
      return c.error("input " + std::to_string(i) + " " + shapeText(*c.inputShape(i)) + "; a scalar is needed");
  SS_TRY(shape_rules::sameAsInput0(c));
  if (c.hasOutput(1)) c.setOutput(1, DType::kBool, c.inputShape(0));
  return {};
}

Status fakeQuantGradient(GradientContext& g) {
  g.setGradient(0, keepWhere(g, g.ensureOutput(1), g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kFakeQuantOp{
    .name = "FakeQuant",
    .domain = "com.microsoft",
    .doc =
        "q = round(x / scale + zero_point); y = (clamp(q, quant_min, quant_max) - zero_point) scale; mask = q in range; "
        "straight-through gradient",
    .inputs = {3, 3},
    .outputs = {1, 2},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferFakeQuantShape,
    .gradient = fakeQuantGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
};

}  // namespace stepscope::ops
