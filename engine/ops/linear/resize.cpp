#include "engine/ops/gradient_context.h"
#include "engine/ops/linear/ops.h"
#include "engine/ops/shape_context.h"
#include "kernels/resize_shape.h"

namespace stepscope::ops {
namespace {

Status inferResizeShape(ShapeContext& c) {
  if (!c.rankKnown(0)) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const Shape x = *c.inputShape(0);
  std::vector<double> scales;
  std::vector<std::int64_t> sizes;
  if (c.hasInput(2)) {
    const Tensor* tensor = c.constant(2);
    for (std::int64_t i = 0; tensor && i < tensor->elements(); ++i) scales.push_back(elementAsDouble(tensor->view(), i));
  }
  if (c.hasInput(3))
    if (const auto numbers = c.integers(3)) sizes = *numbers;
  const auto known = knownDims(x);
  if (known && (!scales.empty() || !sizes.empty())) {
    const auto shape = resizeShape(c.attrs(), *known, scales, sizes);
    if (!shape) return c.error(shape.error().message);
    c.setOutput(0, c.inputDType(0), shapeOf(shape->y));
    return {};
  }
  // Symbols stay where the scale is 1; what a size gives is known without x.
  Shape y = c.freshShape(0, x.size());
  std::vector<std::int64_t> axes = c.attrs().integers("axes");
  if (!c.attrs().has("axes"))
    for (std::size_t i = 0; i < x.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::vector<bool> resized(x.size(), false);
  const bool stretch = c.attrs().text("keep_aspect_ratio_policy", "stretch") == "stretch";
  const auto contents = c.hasInput(3) ? c.contents(3) : std::nullopt;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    SS_ASSIGN(const std::size_t axis, c.axis(axes[i], x));
    resized[axis] = true;
    if (scales.size() == axes.size() && scales[i] == 1) y[axis] = x[axis];
    if (contents && contents->size() == axes.size() && stretch) y[axis] = (*contents)[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!resized[i]) y[i] = x[i];
  c.setOutput(0, c.inputDType(0), std::move(y));
  return {};
}

Status resizeGradient(GradientContext& g) {
  if (!g.needs(0)) return {};
  g.setGradient(0, g.internal("ResizeGrad", {g.dy(0), g.shapeOf(g.x(0)), g.x(1), g.x(2), g.x(3)}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kResizeOp{
    .name = "Resize",
    .sinceVersion = 19,
    .doc = "Samples x at other positions per axis: nearest, linear or cubic, every coordinate transformation of ONNX.",
    .inputs = {1, 4},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = bit(1) | bit(2) | bit(3),
    .inferShape = inferResizeShape,
    .gradient = resizeGradient,
    .differentiableInputs = bit(0),
    .layout = {.inputs = bit(0), .outputs = bit(0), .together = true, .channels = ChannelRule::kSampled},
};

}  // namespace stepscope::ops
