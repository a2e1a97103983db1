#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSpaceToDepthShape(ShapeContext& c) {
  const std::int64_t block = c.attrs().integer("blocksize", 0);
  if (block < 1 || block > 32768) return c.error("blocksize " + std::to_string(block) + "; expected a number from 1");
  const std::optional<Shape> x = c.inputShape(0);
  if (!x) {
    c.setOutput(0, c.inputDType(0), c.freshShape(0, 4));
    return {};
  }
  if (x->size() != 4) return c.error("shape " + shapeText(*x) + "; expected [N, C, H, W]");
  for (const std::size_t a : {std::size_t{2}, std::size_t{3}})
    if ((*x)[a].known() && (*x)[a].value() % block != 0)
      return c.error("extent " + (*x)[a].text() + " of axis " + std::to_string(a) + " does not divide by blocksize " +
                     std::to_string(block));
  c.setOutput(
      0, c.inputDType(0),
      Shape{(*x)[0], (*x)[1] * Dim(block * block), Dim::floorDiv((*x)[2], Dim(block)), Dim::floorDiv((*x)[3], Dim(block))});
  return {};
}

Status spaceToDepthGradient(GradientContext& g) {
  g.setGradient(0, g.op("DepthToSpace", {g.dy(0)}, {{"blocksize", g.attrs().integer("blocksize", 0)}}));
  return {};
}

}  // namespace

constexpr OpDef kSpaceToDepthOp{
    .name = "SpaceToDepth",
    .sinceVersion = 13,
    .doc = "Blocks of space moved into channels: y[n, (i*b+j)*C+c, h, w] = x[n, c, h*b+i, w*b+j].",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSpaceToDepthShape,
    .gradient = spaceToDepthGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
