#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/quantize_shape.h"

namespace stepscope::ops {
namespace {

Status inferDequantizeLinearShape(ShapeContext& c) {
  if (c.hasInput(2)) {
    SS_TRY(requireSameShape(c, 1, 2));
    SS_TRY(requireType(c, 2, c.inputDType(0)));
  }
  SS_TRY(requireFloat(c, 1));
  SS_TRY(checkScale(c));
  c.setOutput(0, c.inputDType(1), c.inputShape(0));
  return {};
}

Status dequantizeLinearGradient(GradientContext& g) {
  if (g.attrs().integer("block_size", 0) != 0) return g.error("no gradient for a scale per block; one per tensor or axis");
  const ValueId scale = g.x(1);
  SS_ASSIGN(const std::size_t scaleRank, g.rank(scale));
  SS_ASSIGN(const std::size_t rank, g.rank(g.x(0)));
  std::vector<std::int64_t> others;  // axes of x along which one scale is shared
  const auto axis = normalizeAxis(g.attrs().integer("axis", 1), static_cast<std::int64_t>(rank));
  const bool perAxis = scaleRank == 1 && !((*g.shape(scale))[0] == Dim(1));
  if (perAxis && !axis) return g.error("axis out of range");
  for (std::size_t i = 0; i < rank; ++i)
    if (!perAxis || static_cast<std::int64_t>(i) != *axis) others.push_back(static_cast<std::int64_t>(i));
  ValueId steps = g.castLike(g.x(0), scale);
  if (g.node().input(2).valid()) {
    ValueId zero = g.castLike(g.x(2), scale);
    if (perAxis) zero = g.unsqueeze(zero, others);
    steps = g.sub(steps, zero);
  }
  g.setGradient(1, g.reshapeLike(g.reduceSum(g.mul(g.dy(0), steps), others, false), scale));
  return {};
}

}  // namespace

extern constexpr OpDef kDequantizeLinearOp{
    .name = "DequantizeLinear",
    .sinceVersion = 21,
    .doc = "y = (x - zero_point) scale; per tensor, axis or block; linear in scale",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferDequantizeLinearShape,
    .gradient = dequantizeLinearGradient,
    .differentiableInputs = bit(1),
};

}  // namespace stepscope::ops
