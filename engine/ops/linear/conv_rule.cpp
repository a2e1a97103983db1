#include "engine/ops/linear/conv_rule.h"

namespace stepscope::ops {

Status requireRank(ShapeContext& c, std::size_t input, std::size_t least) {
  if (c.rankKnown(input) && c.inputShape(input)->size() < least)
    return c.error("input " + std::to_string(input) + " has shape " + shapeText(*c.inputShape(input)) + "; expected rank " +
                   std::to_string(least) + " or more");
  return {};
}

Result<Dim> windowExtent(ShapeContext& c, const Window& window, std::size_t axis, const Dim& in, std::size_t output) {
  if (in.known()) {
    const auto out = windowOutput(window, axis, in.value());
    if (!out) return c.error(out.error().message);
    return Dim(*out);
  }
  const WindowAxis& a = window.axes[axis];
  if (window.autoPad == AutoPad::kSameUpper || window.autoPad == AutoPad::kSameLower) return Dim::ceilDiv(in, a.stride);
  if (window.ceilMode) return c.freshDim(output, axis + 2);
  return Dim::floorDiv(in + Dim(a.padBegin + a.padEnd - a.extent()), a.stride) + 1;
}

Status inferConv(ShapeContext& c, std::size_t x, std::size_t w, DType dtype) {
  SS_TRY(requireRank(c, x, 3));
  SS_TRY(requireRank(c, w, 3));
  if (!c.rankKnown(x)) {
    if (c.rankKnown(w))
      c.setOutput(0, dtype, c.freshShape(0, c.inputShape(w)->size()));
    else
      c.setOutput(0, dtype, std::nullopt);
    return {};
  }
  const Shape input = *c.inputShape(x);
  if (!c.rankKnown(w)) {
    Shape y = c.freshShape(0, input.size());
    y[0] = input[0];
    c.setOutput(0, dtype, std::move(y));
    return {};
  }
  const Shape weight = *c.inputShape(w);
  if (weight.size() != input.size())
    return c.error("weight of shape " + shapeText(weight) + " for input " + shapeText(input) + "; expected equal ranks");
  const std::int64_t groups = c.attrs().integer("group", 1);
  if (groups < 1) return c.error("attribute 'group' is " + std::to_string(groups) + "; expected 1 or more");
  SS_TRY(c.unify(input[1], weight[1] * Dim(groups), "input channels and weight channels times group"));
  if (weight[0].known() && weight[0].value() % groups != 0)
    return c.error(weight[0].text() + " output channels in " + std::to_string(groups) + " groups; expected a multiple");
  Shape y{input[0], weight[0]};
  const auto kernel = knownDims(Shape(weight.begin() + 2, weight.end()));
  const std::size_t rank = input.size() - 2;
  if (!kernel) {
    for (std::size_t i = 0; i < rank; ++i) y.push_back(c.freshDim(0, i + 2));
  } else {
    const auto window = parseWindow(c.attrs(), rank, *kernel);
    if (!window) return c.error(window.error().message);
    for (std::size_t i = 0; i < rank; ++i) {
      SS_ASSIGN(Dim extent, windowExtent(c, *window, i, input[i + 2]));
      y.push_back(extent);
    }
  }
  c.setOutput(0, dtype, std::move(y));
  return {};
}

Status inferPool(ShapeContext& c) {
  SS_TRY(requireRank(c, 0, 3));
  std::optional<Shape> y;
  if (c.rankKnown(0)) {
    const Shape input = *c.inputShape(0);
    const auto window = parseWindow(c.attrs(), input.size() - 2);
    if (!window) return c.error(window.error().message);
    y = Shape{input[0], input[1]};
    for (std::size_t i = 0; i + 2 < input.size(); ++i) {
      SS_ASSIGN(Dim extent, windowExtent(c, *window, i, input[i + 2]));
      y->push_back(extent);
    }
  }
  c.setOutput(0, c.inputDType(0), y);
  if (c.hasOutput(1)) c.setOutput(1, DType::kI64, y);
  return {};
}

Status inferFromShapeInput(ShapeContext& c, std::size_t i, std::size_t rank) {
  const auto contents = c.contents(i);
  if (contents)
    c.setOutput(0, c.inputDType(0), Shape(contents->begin(), contents->end()));
  else if (const auto numbers = c.integers(i))
    c.setOutput(0, c.inputDType(0), shapeOf(*numbers));
  else
    c.setOutput(0, c.inputDType(0), c.freshShape(0, rank));
  return {};
}

double convFlops(std::span<const std::int64_t> y, std::span<const std::int64_t> w) {
  double flops = 2;
  for (const std::int64_t extent : y) flops *= static_cast<double>(extent);
  for (std::size_t i = 1; i < w.size(); ++i) flops *= static_cast<double>(w[i]);
  return flops;
}

double convFlops(std::span<const std::int64_t> y, std::span<const std::int64_t> w, std::span<const std::int64_t> tiled,
                 const Attributes* attrs) {
  if (attrs == nullptr || attrs->integer("winograd", 0) == 0 || tiled.size() != 4) return convFlops(y, w);
  const std::int64_t tiles = tiled[0] * ((tiled[2] + 3) / 4) * ((tiled[3] + 3) / 4);
  return 2.0 * 36 * static_cast<double>(tiles) * static_cast<double>(w[0]) * static_cast<double>(w[1]);
}

}  // namespace stepscope::ops
