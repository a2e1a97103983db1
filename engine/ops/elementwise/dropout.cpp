#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// `share`: the input that says the share that goes; the mode is the one after it.
// 1 / (1 - ratio), and 0 for a ratio of 1 or more, which keeps nothing.
ValueId keepScale(GradientContext& g, std::size_t share) {
  const ValueId dy = g.dy(0);
  if (!g.node().input(share).valid()) return g.scalar(2, dy);  // the default ratio is 1/2
  if (const Tensor* ratio = g.constant(g.x(share)); ratio != nullptr && ratio->elements() == 1) {
    const double value = elementAsDouble(ratio->view(), 0);
    return g.scalar(value < 1 ? 1 / (1 - value) : 0, dy);
  }
  const ValueId one = g.scalar(1, g.x(share));
  const ValueId scale = g.op("Reciprocal", {g.sub(one, g.x(share))});
  return g.castLike(keepWhere(g, g.op("Less", {g.x(share), one}), scale), dy);
}

Status inferDropoutShape(ShapeContext& c, std::size_t share) {
  SS_TRY(requireFloat(c, 0));
  for (std::size_t i = share; i <= share + 1; ++i)
    if (c.hasInput(i) && c.rankKnown(i) && c.inputShape(i)->size() > 1)
      return c.error(std::string(i == share ? "ratio " : "training_mode ") + shapeText(*c.inputShape(i)) +
                     "; a scalar is needed");
  if (c.hasInput(share)) SS_TRY(requireFloat(c, share));
  if (c.hasInput(share + 1)) SS_TRY(requireType(c, share + 1, DType::kBool));
  SS_TRY(shape_rules::sameAsInput0(c));
  if (c.hasOutput(1)) c.setOutput(1, DType::kBool, c.inputShape(0));
  return {};
}

Status dropoutGradient(GradientContext& g, std::size_t share) {
  if (!g.node().input(share + 1).valid()) {  // not training by default
    g.setGradient(0, g.dy(0));
    return {};
  }
  const Tensor* mode = g.constant(g.x(share + 1));
  const bool known = mode != nullptr && mode->elements() == 1;
  if (known && elementAsDouble(mode->view(), 0) == 0) {
    g.setGradient(0, g.dy(0));
    return {};
  }
  const ValueId kept = g.mul(keepWhere(g, g.ensureOutput(1), g.dy(0)), keepScale(g, share));
  g.setGradient(0, known ? kept : g.where(g.x(share + 1), kept, g.dy(0)));
  return {};
}

// The same of a part: its places stand between x and the share.
Status inferPart(ShapeContext& c) {
  SS_TRY(requireType(c, 1, DType::kI64));
  SS_TRY(requireType(c, 2, DType::kI64));
  if (c.rankKnown(1) && c.inputShape(1)->size() != 1 && c.inputShape(1)->size() != 2)
    return c.error("places " + shapeText(*c.inputShape(1)) + "; expected [K] or [outer, K]");
  return inferDropoutShape(c, 3);
}

// Of a sum: bias and residual stand between x and the share.
Status inferSum(ShapeContext& c) {
  for (const std::size_t i : {1u, 2u}) {
    if (!c.hasInput(i)) continue;
    SS_TRY(requireType(c, i, c.inputDType(0)));
    if (!c.rankKnown(0) || !c.rankKnown(i)) continue;
    const Shape &x = *c.inputShape(0), &other = *c.inputShape(i);
    if (i == 1 && other.size() == 1 && !x.empty())
      SS_TRY(c.unify(x.back(), other.front(), "last extent of x and bias"));
    else if (other.size() != x.size())
      return c.error(std::string(i == 1 ? "bias " : "residual ") + shapeText(other) + " for x " + shapeText(x) +
                     "; expected its extents" + (i == 1 ? ", or the last one" : ""));
    else
      SS_TRY(c.unifyShapes(x, other, i == 1 ? "x and bias" : "x and residual"));
  }
  return inferDropoutShape(c, 3);
}

}  // namespace

extern constexpr OpDef kBiasDropoutOp{
    .name = "BiasDropout",
    .domain = kInternalDomain,
    .doc =
        "y = Dropout(x + bias) + residual; inputs x, bias?, residual?, ratio?, training_mode?; bias is as x or a row of its "
        "last axis (kernels/bias_dropout.h). Written by passes after the gradient.",
    .inputs = {1, 5},
    .outputs = {1, 2},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = bit(3) | bit(4),
    .inferShape = inferSum,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(2),
    .random = true,
};

extern constexpr OpDef kDropoutOp{
    .name = "Dropout",
    .sinceVersion = 13,
    .doc = "y = training_mode ? x mask / (1 - ratio) : x; mask = uniform01(key, element) >= ratio",
    .inputs = {1, 3},
    .outputs = {1, 2},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = bit(1) | bit(2),
    .inferShape = [](ShapeContext& c) { return inferDropoutShape(c, 1); },
    .gradient = [](GradientContext& g) { return dropoutGradient(g, 1); },
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .random = true,
};

extern constexpr OpDef kDropoutPartOp{
    .name = "DropoutPart",
    .domain = kInternalDomain,
    .doc =
        "Dropout of some places of `axis` with the mask that the whole value would have; inputs x, places, extent of the "
        "whole "
        "axis, ratio?, training_mode? (kernels/dropout_part.h)",
    .inputs = {3, 5},
    .outputs = {1, 2},
    .category = OpCategory::kRandom,
    .precision = Precision::kFollows,
    .hostInputs = bit(2) | bit(3) | bit(4),
    .inferShape = inferPart,
    .gradient = [](GradientContext& g) { return dropoutGradient(g, 3); },
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .random = true,
};

}  // namespace stepscope::ops
