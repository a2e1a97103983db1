#include "engine/ops/linear/global_pool_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status globalAveragePoolGradient(GradientContext& g) {
  if (!g.needs(0)) return {};
  const ValueId x = g.x(0);
  SS_ASSIGN(const std::size_t rank, g.rank(x));
  const Shape& shape = *g.shape(x);
  ValueId count;
  if (const auto known = knownDims(Shape(shape.begin() + 2, shape.end()))) {
    double product = 1;
    for (const std::int64_t extent : *known) product *= static_cast<double>(extent);
    count = g.scalar(product, x);
  } else {
    const ValueId extents = g.op("Shape", {x}, {{"start", std::int64_t{2}}, {"end", static_cast<std::int64_t>(rank)}});
    count = g.castLike(g.op("ReduceProd", {extents}, {{"keepdims", std::int64_t{0}}}), x);
  }
  g.setGradient(0, g.expandTo(g.div(g.dy(0), count), x));
  return {};
}

}  // namespace

constexpr OpDef kGlobalAveragePoolOp{
    .name = "GlobalAveragePool",
    .doc = "Mean over all spatial axes, which stay with extent 1.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferGlobalPool,
    .gradient = globalAveragePoolGradient,
    .differentiableInputs = bit(0),
    .layout = {.inputs = bit(0)},
};

}  // namespace stepscope::ops
