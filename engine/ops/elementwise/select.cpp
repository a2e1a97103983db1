#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferSelectShape(ShapeContext& c) {
  SS_TRY(requireType(c, 0, DType::kBool));
  SS_TRY(requireSameTypes(c, 1));
  std::optional<Shape> shape;  // what the branches agree on
  if (c.rankKnown(1) && c.rankKnown(2) && c.inputShape(1)->size() == c.inputShape(2)->size()) {
    shape = *c.inputShape(1);
    for (std::size_t axis = 0; axis < shape->size(); ++axis)
      if ((*shape)[axis] != (*c.inputShape(2))[axis]) (*shape)[axis] = c.freshDim(0, axis);
  }
  c.setOutput(0, c.inputDType(1), shape);
  if (const auto a = operandContents(c, 1), b = operandContents(c, 2); a && b && *a == *b) c.setContents(0, *a);
  return {};
}

Status selectGradient(GradientContext& g) {
  const auto gate = [&](std::int64_t expected) { return g.internal("Gate", {g.x(0), g.dy(0)}, {{"expected", expected}}); };
  if (g.needs(1)) g.setGradient(1, gate(1));
  if (g.needs(2)) g.setGradient(2, gate(0));
  return {};
}

}  // namespace

extern constexpr OpDef kSelectOp{
    .name = "Select",
    .domain = kInternalDomain,
    .doc = "y = condition ? a : b for a scalar condition; the branch not chosen is not read (result of If)",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kControl,
    .precision = Precision::kFollows,
    .hostInputs = bit(0),
    .inferShape = inferSelectShape,
    .gradient = selectGradient,
    .differentiableInputs = bit(1) | bit(2),
    .inPlaceInputs = bit(1) | bit(2),
};

}  // namespace stepscope::ops
