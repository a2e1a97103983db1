#include "engine/ops/elementwise/quantize_shape.h"

namespace stepscope::ops {

Status checkScale(ShapeContext& c) {
  const std::int64_t block = c.attrs().integer("block_size", 0);
  if (block < 0) return c.error("block_size " + std::to_string(block) + "; 0 or more");
  if (!c.rankKnown(0) || !c.rankKnown(1)) return {};
  const Shape &x = *c.inputShape(0), &scale = *c.inputShape(1);
  if (scale.empty()) return {};
  if (block == 0 && scale.size() == 1 && scale[0] == Dim(1)) return {};
  SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 1), x));
  if (block == 0) {
    if (scale.size() != 1) return c.error("scale " + shapeText(scale) + "; a scalar or a vector");
    return c.unify(scale[0], x[axis], "scale and axis");
  }
  if (scale.size() != x.size()) return c.error("scale " + shapeText(scale) + " per block; of the rank of x " + shapeText(x));
  for (std::size_t i = 0; i < x.size(); ++i)
    SS_TRY(c.unify(scale[i], i == axis ? Dim::ceilDiv(x[i], Dim(block)) : x[i], "scale and blocks"));
  return {};
}

Status requireSameShape(ShapeContext& c, std::size_t a, std::size_t b) {
  if (!c.rankKnown(a) || !c.rankKnown(b)) return {};
  // One number is one number: exporters write [1] beside [].
  const auto single = [](const Shape& shape) { return shape.empty() || (shape.size() == 1 && shape[0] == Dim(1)); };
  if (single(*c.inputShape(a)) && single(*c.inputShape(b))) return {};
  return c.unifyShapes(*c.inputShape(a), *c.inputShape(b), "shapes of scale and zero point");
}

}  // namespace stepscope::ops
