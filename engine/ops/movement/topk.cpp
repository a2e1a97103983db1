#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferTopkShape(ShapeContext& c) {
  std::optional<Shape> shape = c.inputShape(0);
  if (shape) {
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", -1), *shape));
    const auto k = knownContents(c, 1);
    if (k && k->size() != 1) return c.error(std::to_string(k->size()) + " numbers for k; expected one");
    if (k && k->front().known() &&
        (k->front().value() < 0 || ((*shape)[axis].known() && k->front().value() > (*shape)[axis].value())))
      return c.error("k " + k->front().text() + "; valid 0.." + (*shape)[axis].text());
    (*shape)[axis] = k ? k->front() : c.freshDim(0, axis);
  }
  if (c.hasOutput(0)) c.setOutput(0, c.inputDType(0), shape);
  if (c.hasOutput(1)) c.setOutput(1, DType::kI64, shape);
  return {};
}

Status topkGradient(GradientContext& g) {
  if (!g.dy(0)) return {};
  const ValueId indices = g.ensureOutput(1);
  g.setGradient(
      0, g.internal("GatherElementsGrad", {g.dy(0), indices, g.shapeOf(g.x(0))}, {{"axis", g.attrs().integer("axis", -1)}}));
  return {};
}

}  // namespace

constexpr OpDef kTopKOp{
    .name = "TopK",
    .sinceVersion = 11,
    .doc =
        "The k largest (smallest) elements along `axis` in order, and their positions; equal ones keep the lower position "
        "first.",
    .inputs = {2, 2},
    .outputs = {2, 2},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferTopkShape,
    .gradient = topkGradient,
    .differentiableInputs = bit(0),
    .differentiableOutputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
