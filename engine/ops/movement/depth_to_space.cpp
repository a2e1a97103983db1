#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferDepthToSpaceShape(ShapeContext& c) {
  const std::int64_t block = c.attrs().integer("blocksize", 0);
  if (block < 1 || block > 32768) return c.error("blocksize " + std::to_string(block) + "; expected a number from 1");
  const std::string mode = c.attrs().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.error("mode '" + mode + "'; expected DCR or CRD");
  const std::optional<Shape> x = c.inputShape(0);
  if (!x) {
    c.setOutput(0, c.inputDType(0), c.freshShape(0, 4));
    return {};
  }
  if (x->size() != 4) return c.error("shape " + shapeText(*x) + "; expected [N, C, H, W]");
  if ((*x)[1].known() && (*x)[1].value() % (block * block) != 0)
    return c.error("channels " + (*x)[1].text() + " do not divide by blocksize squared " + std::to_string(block * block));
  c.setOutput(0, c.inputDType(0),
              Shape{(*x)[0], Dim::floorDiv((*x)[1], Dim(block * block)), (*x)[2] * Dim(block), (*x)[3] * Dim(block)});
  return {};
}

Status depthToSpaceGradient(GradientContext& g) {
  const std::int64_t block = g.attrs().integer("blocksize", 0);
  if (g.attrs().text("mode", "DCR") == "DCR") {
    g.setGradient(0, g.op("SpaceToDepth", {g.dy(0)}, {{"blocksize", block}}));
    return {};
  }
  const ValueId b = g.ints({block});
  const ValueId six = g.op("Concat", {g.dimOf(g.x(0), 0), g.ints({-1}), g.dimOf(g.x(0), 2), b, g.dimOf(g.x(0), 3), b},
                           {{"axis", std::int64_t{0}}});
  g.setGradient(0, g.reshapeLike(g.transpose(g.op("Reshape", {g.dy(0), six}), {0, 1, 3, 5, 2, 4}), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kDepthToSpaceOp{
    .name = "DepthToSpace",
    .sinceVersion = 13,
    .doc =
        "Channels moved into blocks of space: y[n, c, h*b+i, w*b+j] = x[n, (i*b+j)*C+c, h, w] (DCR) or x[n, (c*b+i)*b+j, h, "
        "w] (CRD).",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferDepthToSpaceShape,
    .gradient = depthToSpaceGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
