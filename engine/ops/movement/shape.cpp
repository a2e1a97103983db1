#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferShapeShape(ShapeContext& c) {
  const std::optional<Shape> input = c.inputShape(0);
  if (!input) {
    c.setOutput(0, DType::kI64, c.freshShape(0, 1));
    return {};
  }
  const auto rank = static_cast<std::int64_t>(input->size());
  const auto clamp = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const std::int64_t start = clamp(c.attrs().integer("start", 0));
  const std::int64_t end = std::max(start, clamp(c.attrs().integer("end", rank)));
  c.setOutput(0, DType::kI64, Shape{Dim(end - start)});
  c.setContents(0, Contents(input->begin() + start, input->begin() + end));
  return {};
}

}  // namespace

constexpr OpDef kShapeOp{
    .name = "Shape",
    .sinceVersion = 21,
    .doc = "The extents of axes start..end as a vector.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferShapeShape,
    .noGradientReason = "integer result",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
