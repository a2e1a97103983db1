// Deformable convolutions against loops in double precision, their gradients against differences of those loops. All of
// ONNX's own node tests of DeformConv pass too (data of onnx 1.23).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<float>;
using Extents = std::vector<std::int64_t>;

struct DeformConv {
  const char* name = "";
  std::int64_t batch = 2, channels = 4, height = 4, width = 5, outputs = 2, kernel = 2;
  std::int64_t group = 1, offsetGroup = 1, stride = 1, dilation = 1, pad = 0;
  bool bias = false, mask = false;

  std::int64_t points(std::int64_t extent) const { return (extent + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; }
  std::int64_t taps() const { return kernel * kernel; }
  Extents xDims() const { return {batch, channels, height, width}; }
  Extents weightDims() const { return {outputs, channels / group, kernel, kernel}; }
  Extents offsetDims() const { return {batch, 2 * offsetGroup * taps(), points(height), points(width)}; }
  Extents maskDims() const { return {batch, offsetGroup * taps(), points(height), points(width)}; }
  Extents yDims() const { return {batch, outputs, points(height), points(width)}; }
};

void PrintTo(const DeformConv& form, std::ostream* out) { *out << form.name; }

Numbers wave(const Extents& dims, double phase, double scale = 1) {
  Numbers values(static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(scale * (std::sin(1.7 * static_cast<double>(i) + phase) + 0.31));
  return values;
}

struct Operands {
  Numbers x, weight, offset, bias, mask;
};

double lossOf(const DeformConv& f, const Operands& o) {
  const std::int64_t rows = f.points(f.height), columns = f.points(f.width);
  const auto pixel = [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    if (y < 0 || y >= f.height || x < 0 || x >= f.width) return 0.0;
    return static_cast<double>(o.x[static_cast<std::size_t>(((n * f.channels + c) * f.height + y) * f.width + x)]);
  };
  const auto sampled = [&](std::int64_t n, std::int64_t c, double y, double x) {
    const double top = std::floor(y), left = std::floor(x), down = y - top, right = x - left;
    const auto t = static_cast<std::int64_t>(top), l = static_cast<std::int64_t>(left);
    return (1 - down) * ((1 - right) * pixel(n, c, t, l) + right * pixel(n, c, t, l + 1)) +
           down * ((1 - right) * pixel(n, c, t + 1, l) + right * pixel(n, c, t + 1, l + 1));
  };
  const Numbers weights = wave(f.yDims(), 2);
  double loss = 0;
  std::size_t result = 0;
  const std::int64_t inputs = f.channels / f.group, perOffset = f.channels / f.offsetGroup;
  for (std::int64_t n = 0; n < f.batch; ++n)
    for (std::int64_t m = 0; m < f.outputs; ++m)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          double y = f.bias ? static_cast<double>(o.bias[static_cast<std::size_t>(m)]) : 0;
          for (std::int64_t i = 0; i < inputs; ++i)
            for (std::int64_t tap = 0; tap < f.taps(); ++tap) {
              const std::int64_t c = m / (f.outputs / f.group) * inputs + i, tapOfGroup = c / perOffset * f.taps() + tap;
              const auto at = [&](const Numbers& values, std::int64_t channels, std::int64_t channel) {
                return static_cast<double>(
                    values[static_cast<std::size_t>(((n * channels + channel) * rows + row) * columns + column)]);
              };
              const std::int64_t pairs = 2 * f.offsetGroup * f.taps();
              const double v = static_cast<double>(row * f.stride - f.pad + tap / f.kernel * f.dilation) +
                               at(o.offset, pairs, 2 * tapOfGroup);
              const double u = static_cast<double>(column * f.stride - f.pad + tap % f.kernel * f.dilation) +
                               at(o.offset, pairs, 2 * tapOfGroup + 1);
              const double share = f.mask ? at(o.mask, f.offsetGroup * f.taps(), tapOfGroup) : 1;
              y += static_cast<double>(o.weight[static_cast<std::size_t>((m * inputs + i) * f.taps() + tap)]) * share *
                   sampled(n, c, v, u);
            }
          loss += y * static_cast<double>(weights[result++]);
        }
  return loss;
}

void expectSlopes(const char* of, const std::vector<double>& gradient, const Numbers& at,
                  const std::function<double(const Numbers&)>& loss) {
  ASSERT_EQ(gradient.size(), at.size()) << of;
  constexpr float kStep = 1.0F / 512;
  for (std::size_t i = 0; i < at.size(); ++i) {
    Numbers up = at, down = at;
    up[i] += kStep;
    down[i] -= kStep;
    EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / (2 * kStep), 2e-3) << of << " " << i;
  }
}

std::string graphOf(const DeformConv& f, const Operands& o, const Extents& strides) {
  std::string text = floats("x", f.xDims(), o.x) + floats("weight", f.weightDims(), o.weight) +
                     floats("offset", f.offsetDims(), o.offset) + floats("c", f.yDims(), wave(f.yDims(), 2));
  if (f.bias) text += floats("bias", {f.outputs}, o.bias);
  if (f.mask) text += floats("mask", f.maskDims(), o.mask);
  const std::string operands = std::string("x weight offset ") + (f.bias ? "bias" : "_") + (f.mask ? " mask" : "");
  return text +
         node("DeformConv", f.bias || f.mask ? operands : "x weight offset", "y",
              attribute("group", f.group) + attribute("offset_group", f.offsetGroup) + attribute("strides", strides) +
                  attribute("dilations", Extents{f.dilation, f.dilation}) +
                  attribute("pads", Extents{f.pad, f.pad, f.pad, f.pad})) +
         node("Mul", "y c", "yc") + node("ReduceSum", "yc", "loss", attribute("keepdims", 0));
}

// Offsets keep away from whole pixels, where the slope along them jumps.
Operands operandsOf(const DeformConv& f) {
  Numbers offset = wave(f.offsetDims(), 0.5, 0.8);
  for (float& v : offset) v = std::floor(v) + 0.2F + 0.6F * (v - std::floor(v));
  return {wave(f.xDims(), 0), wave(f.weightDims(), 1), offset, wave({f.outputs}, 3), wave(f.maskDims(), 4)};
}

class DeformConvForms : public ::testing::TestWithParam<DeformConv> {};

TEST_P(DeformConvForms, AgreesWithLoopsAndTheirDifferences) {
  const DeformConv& f = GetParam();
  const Operands o = operandsOf(f);
  std::vector<std::string> parameters{"x", "weight", "offset"};
  if (f.bias) parameters.emplace_back("bias");
  if (f.mask) parameters.emplace_back("mask");
  const auto step = smallStep(graphOf(f, o, {f.stride, f.stride}), 22, parameters);
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, lossOf(f, o), 1e-4 * (1 + std::abs(step->loss)));
  const auto along = [&](Numbers Operands::*of) {
    return [&f, &o, of](const Numbers& values) {
      Operands changed = o;
      changed.*of = values;
      return lossOf(f, changed);
    };
  };
  expectSlopes("x", step->gradients.at("x"), o.x, along(&Operands::x));
  expectSlopes("weight", step->gradients.at("weight"), o.weight, along(&Operands::weight));
  expectSlopes("offset", step->gradients.at("offset"), o.offset, along(&Operands::offset));
  if (f.bias) expectSlopes("bias", step->gradients.at("bias"), o.bias, along(&Operands::bias));
  if (f.mask) expectSlopes("mask", step->gradients.at("mask"), o.mask, along(&Operands::mask));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, DeformConvForms,
    ::testing::Values(DeformConv{.name = "plain"}, DeformConv{.name = "bias_and_mask", .pad = 1, .bias = true, .mask = true},
                      DeformConv{.name = "groups", .outputs = 4, .group = 2, .bias = true},
                      DeformConv{.name = "offset_groups", .offsetGroup = 2, .mask = true},
                      DeformConv{.name = "both_groups", .outputs = 2, .group = 2, .offsetGroup = 4, .pad = 1},
                      DeformConv{.name = "strided", .batch = 1, .height = 5, .stride = 2, .pad = 1, .mask = true},
                      DeformConv{.name = "dilated", .batch = 1, .dilation = 2, .pad = 1},
                      DeformConv{.name = "one_column", .channels = 1, .width = 1, .kernel = 1, .mask = true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LowerDeformConv, OffsetsOfOtherExtentsAreNamed) {
  const DeformConv f;
  const auto step = smallStep(graphOf(f, operandsOf(f), {2, 2}), 22, {"x"});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("expected the 2 points of the convolution"), std::string::npos)
      << step.error().message;
}

}  // namespace
}  // namespace stepscope::testing
