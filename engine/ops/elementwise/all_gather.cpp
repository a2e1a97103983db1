#include <fmt/format.h>

#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_parts.h"
#include "kernels/rank_part.h"

namespace stepscope::ops {
namespace {

// The extents of the results where no tensor has them: for each its rank, then its axes.
Result<std::vector<Shape>> shapesIn(const ShapeContext& c) {
  std::vector<Shape> shapes;
  const std::vector<std::int64_t> numbers = c.attrs().integers("extents");
  for (std::size_t i = 0; i < numbers.size();) {
    const std::int64_t rank = numbers[i++];
    if (rank < 0 || static_cast<std::size_t>(rank) > numbers.size() - i)
      return c.error(fmt::format("attribute extents: a rank of {} before {} numbers; expected one of them for each axis",
                                 rank, numbers.size() - i));
    Shape& shape = shapes.emplace_back();
    for (std::int64_t axis = 0; axis < rank; ++axis) shape.push_back(Dim(numbers[i++]));
  }
  return shapes;
}

Status inferFromExtents(ShapeContext& c, std::int64_t ranks) {
  SS_ASSIGN(const std::vector<Shape> shapes, shapesIn(c));
  if (c.inputCount() != shapes.size() || c.outputCount() > shapes.size())
    return c.error(fmt::format("{} inputs, {} outputs and extents of {}; expected a part and a result of each",
                               c.inputCount(), c.outputCount(), shapes.size()));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape part{Dim(partLength(elementCount(*knownDims(shapes[i])), ranks))};
    if (c.rankKnown(i)) SS_TRY(c.unifyShapes(part, *c.inputShape(i), "part and its extents"));
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(i), shapes[i]);
  }
  return {};
}

// Tensors whose extents the results have, then a part of each. A parameter stands there as it was, so that the plan lets the
// parts that come be written over it. Or parts alone, where the extents are an attribute.
Status inferAllGatherShape(ShapeContext& c) {
  SS_ASSIGN(const std::int64_t ranks, ranksOf(c));
  if (c.attrs().has("extents")) return inferFromExtents(c, ranks);
  const std::size_t count = c.inputCount() / 2;
  if (c.inputCount() != 2 * count || c.outputCount() > count)
    return c.error(std::to_string(c.inputCount()) + " inputs and " + std::to_string(c.outputCount()) +
                   " outputs; expected a tensor, its part and a result of each");
  for (std::size_t i = 0; i < count; ++i) {
    const auto part = partShape(c, i, i, ranks);
    if (part && c.rankKnown(count + i)) SS_TRY(c.unifyShapes(*part, *c.inputShape(count + i), "part and its extents"));
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(count + i), c.inputShape(i));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kAllGatherOp{
    .name = "AllGather",
    .domain = kInternalDomain,
    .doc =
        "y_i has the extents of x_i and the parts of all ranks, of which this one has p_i; inputs x_0, x_1 … p_0, p_1 …, "
        "or p_0, p_1 … and attribute extents: rank and axes of each y_i",
    .inputs = {1, kMany},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferAllGatherShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
