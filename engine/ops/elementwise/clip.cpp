#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferShape(ShapeContext& c) {
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

Status gradient(GradientContext& g) {
  ValueId gradient = g.dy(0);
  const auto present = [&](std::size_t i) { return g.node().input(i).valid(); };
  if (present(1)) gradient = dropWhere(g, g.op("Less", {g.x(0), g.x(1)}), gradient);
  if (present(2)) gradient = dropWhere(g, g.op("Greater", {g.x(0), g.x(2)}), gradient);
  g.setGradient(0, gradient);
  return {};
}

}  // namespace

extern constexpr OpDef kClipOp{
    .name = "Clip",
    .doc = "y = min(max(x, low), high); slope 1 at the bounds",
    .inputs = {1, 3},
    .outputs = {1, 1},
    .inferShape = inferShape,
    .gradient = gradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
