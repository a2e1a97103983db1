#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferClipShape(ShapeContext& c) {
  SS_TRY(requireSameTypes(c));
  SS_TRY(shape_rules::sameAsInput0(c));
  auto contents = operandContents(c, 0);
  if (!contents) return {};
  for (std::size_t bound = 1; bound <= 2; ++bound) {
    if (!c.hasInput(bound)) continue;
    const auto limit = operandContents(c, bound);
    if (!limit || limit->size() != 1) return {};
    for (Dim& element : *contents) {
      const auto clipped = bound == 1 ? maxDims(element, limit->front()) : minDims(element, limit->front());
      if (!clipped) return {};
      element = *clipped;
    }
  }
  c.setContents(0, std::move(*contents));
  return {};
}

// Where low exceeds high every result is high, so that bound alone has a slope.
Status clipGradient(GradientContext& g) {
  const bool low = g.node().input(1).valid(), high = g.node().input(2).valid();
  const ValueId below = low ? g.op("Less", {g.x(0), g.x(1)}) : ValueId{},
                above = high ? g.op("Greater", {g.x(0), g.x(2)}) : ValueId{};
  if (g.needs(0)) {
    ValueId gradient = g.dy(0);
    if (low) gradient = dropWhere(g, below, gradient);
    if (high) gradient = dropWhere(g, above, gradient);
    g.setGradient(0, gradient);
  }
  const auto crossed = [&] { return g.op("Greater", {g.x(1), g.x(2)}); };
  if (low && g.needs(1)) {
    const ValueId gradient = keepWhere(g, below, g.dy(0));
    g.setGradient(1, g.reduceTo(high ? dropWhere(g, crossed(), gradient) : gradient, g.x(1)));
  }
  if (high && g.needs(2)) {
    const ValueId gradient = keepWhere(g, low ? g.op("Or", {above, crossed()}) : above, g.dy(0));
    g.setGradient(2, g.reduceTo(gradient, g.x(2)));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kClipOp{
    .name = "Clip",
    .sinceVersion = 13,
    .doc = "y = min(max(x, low), high); slope 1 in x at the bounds",
    .inputs = {1, 3},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferClipShape,
    .gradient = clipGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
