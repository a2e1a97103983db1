#include <cmath>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

// Number of steps when all three operands are constants; nothing when the range is not finite.
std::optional<std::int64_t> floatSteps(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const double steps =
      std::ceil((elementAsDouble(limit.view(), 0) - elementAsDouble(start.view(), 0)) / elementAsDouble(delta.view(), 0));
  if (!std::isfinite(steps) || steps > 1e15) return std::nullopt;
  return steps > 0 ? static_cast<std::int64_t>(steps) : 0;
}

Status inferRangeShape(ShapeContext& c) {
  SS_TRY(sameType(c, 0, 1));
  SS_TRY(sameType(c, 0, 2));
  const DType dtype = c.inputDType(0);
  c.setOutput(0, dtype, c.freshShape(0, 1));
  if (isFloating(dtype)) {
    const Tensor *start = c.constant(0), *limit = c.constant(1), *delta = c.constant(2);
    if (start == nullptr || limit == nullptr || delta == nullptr) return {};
    if (start->elements() != 1 || limit->elements() != 1 || delta->elements() != 1)
      return c.error("operands must be scalars");
    const auto steps = floatSteps(*start, *limit, *delta);
    if (!steps) return c.error("start, limit and delta give no finite range");
    c.setOutput(0, dtype, Shape{Dim(*steps)});
    return {};
  }
  const auto start = knownContents(c, 0), limit = knownContents(c, 1), delta = knownContents(c, 2);
  if (!start || !limit || !delta) return {};
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1) return c.error("operands must be scalars");
  if (!delta->front().known()) return {};
  const std::int64_t step = delta->front().value();
  if (step == 0) return c.error("delta 0; expected a number other than 0");
  if (!start->front().known() || !limit->front().known()) {
    const Dim span = limit->front() - start->front();
    c.setOutput(0, dtype, Shape{step > 0 ? Dim::ceilDiv(span, Dim(step)) : Dim::ceilDiv(Dim(0) - span, Dim(-step))});
    return {};
  }
  std::int64_t span = 0;
  if (step == INT64_MIN || __builtin_sub_overflow(limit->front().value(), start->front().value(), &span) ||
      span == INT64_MIN)
    return c.error("start, limit and delta give no range that can be counted");
  const bool empty = span == 0 || (span < 0) != (step < 0);
  const std::int64_t count = empty ? 0 : span / step + (span % step != 0 ? 1 : 0);
  c.setOutput(0, dtype, Shape{Dim(count)});
  if (count > static_cast<std::int64_t>(kMaxContents)) return {};
  Contents contents;
  for (std::int64_t i = 0; i < count; ++i) contents.emplace_back(start->front().value() + i * step);
  c.setContents(0, std::move(contents));
  return {};
}

}  // namespace

constexpr OpDef kRangeOp{
    .name = "Range",
    .sinceVersion = 11,
    .doc = "start, start + delta, … up to but without limit.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(0) | bit(1) | bit(2),
    .inferShape = inferRangeShape,
    .noGradientReason = "positions: the number of elements depends on the operands, which are not trained",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
