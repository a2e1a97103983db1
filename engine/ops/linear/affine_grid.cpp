#include "engine/ops/gradient_context.h"
#include "engine/ops/linear/ops.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {
namespace {

Status inferAffineGridShape(ShapeContext& c) {
  if (c.rankKnown(0) && c.inputShape(0)->size() != 3)
    return c.error("theta of shape " + shapeText(*c.inputShape(0)) + "; expected [N, axes, axes + 1]");
  const auto size = c.contents(1);
  if (!size) {
    // N, axes of the image, coordinates: as many as there are extents in size.
    const bool known = c.rankKnown(1) && c.inputShape(1)->size() == 1 && c.inputShape(1)->front().known();
    const std::int64_t rank = known ? c.inputShape(1)->front().value() : 0;
    c.setOutput(0, c.inputDType(0),
                rank == 4 || rank == 5 ? std::optional(c.freshShape(0, static_cast<std::size_t>(rank))) : std::nullopt);
    return {};
  }
  if (size->size() != 4 && size->size() != 5)
    return c.error(std::to_string(size->size()) + " extents in size; expected 4 (N, C, H, W) or 5 (N, C, D, H, W)");
  const Dim axes(static_cast<std::int64_t>(size->size()) - 2);
  if (c.rankKnown(0)) {
    SS_TRY(c.unify((*c.inputShape(0))[0], (*size)[0], "batches of theta and size"));
    SS_TRY(c.unify((*c.inputShape(0))[1], axes, "rows of theta and axes"));
    SS_TRY(c.unify((*c.inputShape(0))[2], axes + Dim(1), "columns of theta and axes + 1"));
  }
  Shape grid{(*size)[0]};
  grid.insert(grid.end(), size->begin() + 2, size->end());
  grid.push_back(axes);
  c.setOutput(0, c.inputDType(0), std::move(grid));
  return {};
}

// dtheta = dyᵀ · base, where base holds the coordinates that theta was applied to: the grid of the identity, and ones.
Status affineGridGradient(GradientContext& g) {
  if (!g.needs(0)) return {};
  SS_ASSIGN(const std::size_t rank, g.rank(g.y(0)));
  const auto axes = static_cast<std::int64_t>(rank) - 2;
  Tensor identity(g.dtype(g.x(0)), {1, axes, axes + 1});
  for (std::int64_t i = 0; i < identity.elements(); ++i)
    storeElement(identity.view(), i, i / (axes + 1) == i % (axes + 1) ? 1 : 0);
  const ValueId theta = g.expandTo(g.constantTensor(std::move(identity)), g.x(0));
  const ValueId positions = g.op("Reshape", {g.op("AffineGrid", {theta, g.x(1)}, g.attrs()), g.ints({0, -1, axes})});
  const ValueId one = g.op(
      "Expand", {g.scalar(1, g.x(0)), g.op("Concat", {g.op("Shape", {positions}, {{"end", std::int64_t{2}}}), g.ints({1})},
                                           {{"axis", std::int64_t{0}}})});
  const ValueId base = g.op("Concat", {positions, one}, {{"axis", std::int64_t{-1}}});
  const ValueId arriving = g.transpose(g.op("Reshape", {g.dy(0), g.ints({0, -1, axes})}), {0, 2, 1});
  g.setGradient(0, g.op("MatMul", {arriving, base}));
  return {};
}

}  // namespace

constexpr OpDef kAffineGridOp{
    .name = "AffineGrid",
    .sinceVersion = 20,
    .doc = "grid[n, p] = theta[n] · (position p in -1..1, 1), the last axis first: where GridSample is to sample.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferAffineGridShape,
    .gradient = affineGridGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
