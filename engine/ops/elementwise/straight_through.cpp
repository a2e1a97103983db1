#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferStraightThroughShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 1));
  c.setOutputType(0, c.inputType(0));
  return {};
}

// dx = dy where round(x / scale) + zero_point lies in what the quantised type can hold: PyTorch's rule for fake_quantize.
Status straightThroughGradient(GradientContext& g) {
  SS_ASSIGN(const std::size_t rank, g.rank(g.x(1)));
  SS_ASSIGN(const std::size_t scaleRank, g.rank(g.x(2)));
  const auto axis = normalizeAxis(g.attrs().integer("axis", 1), static_cast<std::int64_t>(rank));
  const bool perAxis = scaleRank == 1 && !((*g.shape(g.x(2)))[0] == Dim(1));
  if (perAxis && !axis) return g.error("axis out of range");
  std::vector<std::int64_t> others;  // axes of x along which one scale is shared
  for (std::size_t i = 0; perAxis && i < rank; ++i)
    if (static_cast<std::int64_t>(i) != *axis) others.push_back(static_cast<std::int64_t>(i));
  const auto spread = [&](ValueId v) { return perAxis ? g.unsqueeze(v, others) : v; };
  ValueId steps = g.op("Round", {g.div(g.x(1), spread(g.castLike(g.x(2), g.x(1))))});
  if (g.node().input(3).valid()) steps = g.add(steps, spread(g.castLike(g.x(3), steps)));
  const ValueId below = g.op("Less", {steps, g.scalar(static_cast<double>(g.attrs().integer("low", 0)), steps)});
  const ValueId above = g.op("Greater", {steps, g.scalar(static_cast<double>(g.attrs().integer("high", 255)), steps)});
  g.setGradient(1, dropWhere(g, g.op("Or", {below, above}), g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kStraightThroughOp{
    .name = "StraightThrough",
    .domain = kInternalDomain,
    .doc = "y = value, the same memory; its gradient goes straight to x where the quantised x is within low..high",
    .inputs = {3, 4},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferStraightThroughShape,
    .gradient = straightThroughGradient,
    .differentiableInputs = bit(1),
    .inPlaceInputs = bit(0),
    .view = true,
};

}  // namespace stepscope::ops
