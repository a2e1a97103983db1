#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferConcatTakenShape(ShapeContext& c) {
  if (c.inputDType(0) != DType::kBool && c.inputDType(0) != DType::kUndefined) return c.error("input 0 is not bool");
  const auto taken = c.integers(0);
  const std::size_t parts = c.inputCount() - 1;
  if (taken && taken->size() != parts)
    return c.error(std::to_string(taken->size()) + " conditions; expected one for each of " + std::to_string(parts) +
                   " parts");
  std::optional<Shape> shape;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    SS_TRY(sameType(c, 1, i + 1));
    const bool read = taken && (*taken)[i] != 0;
    count += read ? 1 : 0;
    if (c.rankKnown(i + 1) && (!taken || read || count == 0)) shape = c.inputShape(i + 1);
  }
  if (shape) {
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *shape));
    (*shape)[axis] = taken ? Dim(count) : c.freshDim(0, axis);
  }
  c.setOutput(0, c.inputDType(1), shape);
  return {};
}

// Each part's place in the whole that would be there if all were taken; zeros for those that were not.
Status concatTakenGradient(GradientContext& g) {
  SS_ASSIGN(const std::size_t rank, g.rank(g.dy(0)));
  const auto parts = static_cast<std::int64_t>(g.node().inputs.size()) - 1;
  std::int64_t axis = g.attrs().integer("axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  std::vector<ValueId> extents;
  for (std::int64_t a = 0; a < static_cast<std::int64_t>(rank); ++a)
    extents.push_back(a == axis ? g.ints({parts}) : g.dimOf(g.dy(0), a));
  const ValueId whole = rank == 1 ? extents.front() : g.op("Concat", extents, {{"axis", std::int64_t{0}}});
  const ValueId places = g.squeeze(g.op("NonZero", {g.x(0)}), {0});
  const ValueId spread = g.internal("GatherGrad", {g.dy(0), places, whole}, {{"axis", axis}});
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(parts), 1);
  const auto slices = g.emit("", "Split", {spread, g.ints(ones)}, static_cast<std::size_t>(parts), {{"axis", axis}});
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (g.needs(i + 1)) g.setGradient(i + 1, slices[i]);
  return {};
}

}  // namespace

constexpr OpDef kConcatTakenOp{
    .name = "ConcatTaken",
    .domain = kInternalDomain,
    .doc =
        "Those parts of extent 1 along `axis` whose condition holds, one after another; others were not computed and are "
        "not read.",
    .inputs = {2, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kControl,
    .precision = Precision::kFollows,
    .hostInputs = bit(0),
    .inferShape = inferConcatTakenShape,
    .gradient = concatTakenGradient,
    .differentiableInputs = kAllInputs & ~bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
