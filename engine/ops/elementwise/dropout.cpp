#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// 1 / (1 - ratio), and 0 for a ratio of 1 or more, which keeps nothing.
ValueId keepScale(GradientContext& g) {
  const ValueId dy = g.dy(0);
  if (!g.node().input(1).valid()) return g.scalar(2, dy);  // the default ratio is 1/2
  if (const Tensor* ratio = g.constant(g.x(1)); ratio != nullptr && ratio->elements() == 1) {
    const double value = elementAsDouble(ratio->view(), 0);
    return g.scalar(value < 1 ? 1 / (1 - value) : 0, dy);
  }
  const ValueId one = g.scalar(1, g.x(1));
  const ValueId scale = g.op("Reciprocal", {g.sub(one, g.x(1))});
  return g.castLike(keepWhere(g, g.op("Less", {g.x(1), one}), scale), dy);
}

Status inferShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.hasInput(i) && c.rankKnown(i) && c.inputShape(i)->size() > 1)
      return c.error(std::string(i == 1 ? "ratio " : "training_mode ") + shapeText(*c.inputShape(i)) +
                     "; a scalar is needed");
  if (c.hasInput(1)) SS_TRY(requireFloat(c, 1));
  if (c.hasInput(2)) SS_TRY(requireType(c, 2, DType::kBool));
  SS_TRY(shape_rules::sameAsInput0(c));
  if (c.hasOutput(1)) c.setOutput(1, DType::kBool, c.inputShape(0));
  return {};
}

Status gradient(GradientContext& g) {
  if (!g.node().input(2).valid()) {  // not training by default
    g.setGradient(0, g.dy(0));
    return {};
  }
  const Tensor* mode = g.constant(g.x(2));
  const bool known = mode != nullptr && mode->elements() == 1;
  if (known && elementAsDouble(mode->view(), 0) == 0) {
    g.setGradient(0, g.dy(0));
    return {};
  }
  const ValueId kept = g.mul(keepWhere(g, g.ensureOutput(1), g.dy(0)), keepScale(g));
  g.setGradient(0, known ? kept : g.where(g.x(2), kept, g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kDropoutOp{
    .name = "Dropout",
    .sinceVersion = 13,
    .doc = "y = training_mode ? x mask / (1 - ratio) : x; mask = uniform01(key, element) >= ratio",
    .inputs = {1, 3},
    .outputs = {1, 2},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = bit(1) | bit(2),
    .inferShape = inferShape,
    .gradient = gradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .random = true,
};

}  // namespace stepscope::ops
