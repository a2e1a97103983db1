#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferArgMaxShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 1));
  if (!c.rankKnown(0)) {
    c.setOutput(0, DType::kI64, std::nullopt);
    return {};
  }
  Shape y = *c.inputShape(0);
  SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), y));
  if (c.attrs().integer("keepdims", 1) != 0)
    y[axis] = 1;
  else
    y.erase(y.begin() + static_cast<std::ptrdiff_t>(axis));
  c.setOutput(0, DType::kI64, y);
  return {};
}

}  // namespace

extern const OpDef kArgMaxOp{
    .name = "ArgMax",
    .sinceVersion = 13,
    .doc = "Index of the maximum along `axis` (0), the first of equal ones, the last with select_last_index; NaN wins.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferArgMaxShape,
    .noGradientReason = "integer result",
    .flops = reduction_rules::flopsPerElement<1>,
};

}  // namespace stepscope::ops
