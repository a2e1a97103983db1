#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferGateShape(ShapeContext& c) {
  SS_TRY(requireType(c, 0, DType::kBool));
  std::optional<Shape> shape = c.inputShape(1);
  if (c.hasInput(2)) {
    if (const auto known = c.contents(2))
      shape = *known;
    else if (const auto numbers = c.integers(2))
      shape = shapeOf(*numbers);
  }
  if (const auto on = c.integers(0); !shape && on && on->size() == 1 && on->front() != c.attrs().integer("expected", 1))
    shape = Shape{};  // of a value that was not computed, so that nobody reads its gradient
  c.setOutput(0, c.inputDType(1), shape);
  return {};
}

}  // namespace

extern constexpr OpDef kGateOp{
    .name = "Gate",
    .domain = kInternalDomain,
    .doc = "y = condition == attribute `expected` ? x : zeros of `shape`, without it of the shape of x, which is not read",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kControl,
    .precision = Precision::kFollows,
    .hostInputs = bit(0) | bit(2),
    .inferShape = inferGateShape,
    .noGradientReason = "only made by the gradient of Select",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(1),
};

}  // namespace stepscope::ops
