#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// Known when every condition is, or when both sides agree.
void foldWhere(ShapeContext& c) {
  const auto condition = operandContents(c, 0), a = operandContents(c, 1), b = operandContents(c, 2);
  if (!a || !b) return;
  std::size_t count = a->size() == 1 ? b->size() : a->size();
  if (condition && count == 1) count = condition->size();
  const auto fits = [count](const Contents& contents) { return contents.size() == 1 || contents.size() == count; };
  if (!fits(*a) || !fits(*b) || (condition && !fits(*condition))) return;
  Contents result;
  for (std::size_t i = 0; i < count; ++i) {
    const Dim& x = broadcastElement(*a, i);
    const Dim& y = broadcastElement(*b, i);
    if (condition && broadcastElement(*condition, i).known())
      result.push_back(broadcastElement(*condition, i) == Dim(0) ? y : x);
    else if (x == y && (condition || count > 1))
      result.push_back(x);
    else
      return;
  }
  c.setContents(0, std::move(result));
}

Status inferWhereShape(ShapeContext& c) {
  SS_TRY(requireType(c, 0, DType::kBool));
  SS_TRY(requireSameTypes(c, 1));
  std::optional<Shape> shape = Shape{};
  for (std::size_t i = 0; i < 3 && shape; ++i) {
    if (!c.rankKnown(i)) {
      shape.reset();
      break;
    }
    SS_ASSIGN(shape, c.broadcast(*shape, *c.inputShape(i)));
  }
  c.setOutput(0, c.inputDType(1), shape);
  if (shape && shape->size() <= 1) foldWhere(c);
  return {};
}

Status whereGradient(GradientContext& g) {
  if (g.needs(1)) g.setGradient(1, g.reduceTo(keepWhere(g, g.x(0), g.dy(0)), g.x(1)));
  if (g.needs(2)) g.setGradient(2, g.reduceTo(dropWhere(g, g.x(0), g.dy(0)), g.x(2)));
  return {};
}

}  // namespace

extern constexpr OpDef kWhereOp{
    .name = "Where",
    .sinceVersion = 16,
    .doc = "y = condition ? a : b",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferWhereShape,
    .gradient = whereGradient,
    .differentiableInputs = bit(1) | bit(2),
    .inPlaceInputs = bit(1) | bit(2),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
