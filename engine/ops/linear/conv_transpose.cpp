#include <numeric>

#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferConvTransposeShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1, 2}));
  SS_TRY(requireRank(c, 0, 3));
  SS_TRY(requireRank(c, 1, 3));
  if (!c.rankKnown(0)) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const Shape input = *c.inputShape(0);
  const std::size_t rank = input.size() - 2;
  Shape y = c.freshShape(0, input.size());
  y[0] = input[0];
  if (c.rankKnown(1)) {
    const Shape weight = *c.inputShape(1);
    if (weight.size() != input.size())
      return c.error("weight of shape " + shapeText(weight) + " for input " + shapeText(input) + "; expected equal ranks");
    const std::int64_t groups = c.attrs().integer("group", 1);
    if (groups < 1 || (input[1].known() && input[1].value() % groups != 0))
      return c.error("attribute 'group' is " + std::to_string(groups) + " for input " + shapeText(input) +
                     "; expected a divisor of the channels");
    SS_TRY(c.unify(input[1], weight[0], "input channels and weight rows"));
    y[1] = weight[1] * Dim(groups);
    if (const auto kernel = knownDims(Shape(weight.begin() + 2, weight.end()))) {
      const auto window = parseWindow(c.attrs(), rank, *kernel);
      if (!window) return c.error(window.error().message);
      std::vector<std::int64_t> shape = c.attrs().integers("output_shape");
      if (shape.size() == input.size()) shape.erase(shape.begin(), shape.begin() + 2);
      std::vector<std::int64_t> padding = c.attrs().integers("output_padding");
      if (padding.empty()) padding.assign(rank, 0);
      if ((!shape.empty() && shape.size() != rank) || padding.size() != rank)
        return c.error("output_shape and output_padding; expected " + std::to_string(rank) + " values");
      for (std::size_t i = 0; i < rank; ++i) {
        if (padding[i] < 0 || padding[i] > INT32_MAX || (!shape.empty() && (shape[i] < 0 || shape[i] > INT32_MAX)))
          return c.error("output_shape or output_padding of axis " + std::to_string(i + 2) + "; expected 0..2147483647");
        if (!shape.empty()) {
          y[i + 2] = shape[i];
        } else if (input[i + 2].known()) {
          if (input[i + 2].value() > INT32_MAX) return c.error("extent " + input[i + 2].text() + "; expected 0..2147483647");
          const std::int64_t extent = transposedOutput(*window, i, input[i + 2].value(), padding[i]);
          if (extent < 0) return c.error("output extent " + std::to_string(extent) + " on axis " + std::to_string(i + 2));
          y[i + 2] = extent;
        } else {
          const WindowAxis& a = window->axes[i];
          const bool same = window->autoPad == AutoPad::kSameUpper || window->autoPad == AutoPad::kSameLower;
          y[i + 2] = same ? input[i + 2] * Dim(a.stride)
                          : (input[i + 2] - Dim(1)) * Dim(a.stride) + Dim(padding[i] + a.extent() - a.padBegin - a.padEnd);
        }
      }
    }
  }
  c.setOutput(0, c.inputDType(0), std::move(y));
  return {};
}

Status convTransposeGradient(GradientContext& g) {
  const ValueId dy = g.dy(0);
  if (g.needs(0)) g.setGradient(0, g.internal("ConvTransposeInputGrad", {dy, g.x(1), g.shapeOf(g.x(0))}, g.attrs()));
  if (g.needs(1)) g.setGradient(1, g.internal("ConvTransposeWeightGrad", {dy, g.x(0), g.shapeOf(g.x(1))}, g.attrs()));
  if (g.needs(2)) {
    SS_ASSIGN(const std::size_t rank, g.rank(dy));
    std::vector<std::int64_t> axes(rank - 1);
    std::iota(axes.begin() + 1, axes.end(), 2);
    g.setGradient(2, g.reduceSum(dy, axes, false));
  }
  return {};
}

double flopsOfConvTranspose(const OpShapes& s) { return convFlops(s.inputs[0], s.inputs[1]); }

}  // namespace

constexpr OpDef kConvTransposeOp{
    .name = "ConvTranspose",
    .sinceVersion = 11,
    .doc = "The adjoint of Conv: every x[n, c, i] adds x · w[c, m, t] to y[n, m, i*stride - pad + t*dilation]; plus b[m].",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kConvolution,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferConvTransposeShape,
    .gradient = convTransposeGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .recompute = Recompute::kCostly,
    .flops = flopsOfConvTranspose,
    .layout = {.inputs = bit(0), .outputs = bit(0), .gains = true},
};

}  // namespace stepscope::ops
