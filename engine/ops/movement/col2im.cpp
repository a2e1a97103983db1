#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferCol2imShape(ShapeContext& c) {
  const std::optional<Shape> x = c.inputShape(0);
  if (x && x->size() != 3) return c.error("shape " + shapeText(*x) + "; expected [N, C * block elements, blocks]");
  const auto image = knownContents(c, 1), block = knownContents(c, 2);
  if (image && block && image->size() != block->size()) return c.error("image and block shapes differ in rank");
  if (!image || !block) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const Dim elements = productOf(*block, 0, block->size());
  if (elements.known() && elements.value() < 1) return c.error("block shape " + shapeText(*block) + " is empty");
  Shape shape{x ? (*x)[0] : c.freshDim(0, 0), x ? Dim::floorDiv((*x)[1], elements) : c.freshDim(0, 1)};
  for (const Dim& dim : *image) {
    if (dim.known() && dim.value() < 0) return c.error("image shape " + shapeText(*image) + " has a negative extent");
    shape.push_back(dim);
  }
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status col2imGradient(GradientContext& g) {
  g.setGradient(0, g.internal("Col2ImGrad", {g.dy(0), g.shapeOf(g.x(0)), g.x(2)}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kCol2ImOp{
    .name = "Col2Im",
    .sinceVersion = 18,
    .doc = "Columns of blocks added back into images where the blocks overlap; attributes dilations, pads, strides.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = bit(1) | bit(2),
    .inferShape = inferCol2imShape,
    .gradient = col2imGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

constexpr OpDef kCol2ImGradOp{
    .name = "Col2ImGrad",
    .domain = kInternalDomain,
    .doc = "dx of Col2Im: the blocks of dy as columns; inputs dy, shape of x, block shape; attributes as Col2Im.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = bit(1) | bit(2),
    .inferShape = gradientShapedByInput1,
    .noGradientReason = "second derivatives are not built",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
