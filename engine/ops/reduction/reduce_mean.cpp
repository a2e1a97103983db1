#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

// The number of elements per result as a value of `like`'s type.
ValueId countPerResult(GradientContext& g, ValueId like) {
  const auto& x = g.shape(g.x(0));
  const auto& y = g.shape(g.y(0));
  if (x && y) {
    const auto ratio = Dim::divideExactly(productOf(*x, 0, x->size()), productOf(*y, 0, y->size()));
    if (ratio && ratio->known()) return g.scalar(static_cast<double>(ratio->value()), like);
  }
  // An empty result has no elements to divide: avoid 0 / 0 in integers.
  const ValueId results = g.op("Max", {g.op("Size", {g.y(0)}), g.intScalar(1)});
  return g.castLike(g.div(g.op("Size", {g.x(0)}), results), like);
}

Status reduceMeanGradient(GradientContext& g) {
  // In float32 for half types: a count above 65504 is infinite in float16.
  const bool half = isLow(g.dtype(g.dy(0)));
  ValueId dy = g.dy(0);
  if (half) dy = g.op("Cast", {dy}, {{"to", static_cast<std::int64_t>(DType::kF32)}});
  dy = g.castLike(g.div(dy, countPerResult(g, dy)), g.x(0));
  g.setGradient(0, g.expandTo(reduction_rules::unreduced(g, dy), g.x(0)));
  return {};
}

}  // namespace

extern const OpDef kReduceMeanOp{
    .name = "ReduceMean",
    .sinceVersion = 18,
    .doc = "y = mean of x over `axes`.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = bit(1),
    .inferShape = reduction_rules::inferReduce,
    .gradient = reduceMeanGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
    .layout = {.inputs = bit(0), .channels = ChannelRule::kReducedAway},
};

}  // namespace stepscope::ops
