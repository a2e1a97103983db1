// The error of the vector functions in units of the last place, over all magnitudes, beside the same function in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "kernels/kernel.h"

namespace stepscope {
namespace {

struct Case {
  const char* op;
  double ulps;  // the bound that kernels/cpu/loops/vector_math.h (or wide_math.h) states, without FMA
};

class VectorMath : public testing::TestWithParam<Case> {};

Tensor run(Backend backend, const std::string& op, const Tensor& x) {
  KernelSpec spec;
  spec.op = op;
  spec.threads = 2;
  spec.inputs = spec.outputs = {{x.dtype(), x.dims(), false, {}}};
  Tensor y(x.dtype(), x.dims());
  const auto kernel = makeKernel(backend, spec);
  EXPECT_TRUE(kernel.has_value());
  EXPECT_EQ((*kernel)->implementation() == "reference", backend == Backend::kReference);
  std::vector<TensorView> in{x.view()}, out{y.view()};
  EXPECT_TRUE((*kernel)->run({in, out, {}, {}, {}}).has_value());
  return y;
}

// The distance of the neighbouring floats of a value.
double ulpOf(double value) {
  const double size = std::min(std::abs(value), 3.4028234663852886e38);
  return size < 0x1p-126 ? 0x1p-149 : std::ldexp(1.0, std::ilogb(size) - 23);
}

TEST_P(VectorMath, StaysWithinItsBoundOverAllFloats) {
  const std::string op = GetParam().op;
  constexpr std::uint32_t kStride = 4099;  // a prime: every exponent, varied mantissas
  constexpr std::int64_t kCount = 0xFFFFFFFFU / kStride;
  Tensor x(DType::kF32, {kCount}), wide(DType::kF64, {kCount});
  for (std::int64_t i = 0; i < kCount; ++i) {
    x.as<float>()[static_cast<std::size_t>(i)] = std::bit_cast<float>(static_cast<std::uint32_t>(i) * kStride);
    wide.as<double>()[static_cast<std::size_t>(i)] = static_cast<double>(x.as<float>()[static_cast<std::size_t>(i)]);
  }
  const Tensor fast = run(Backend::kCpu, op, x), exact = run(Backend::kReference, op, wide);
  double worst = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kCount); ++i) {
    const double expected = exact.as<double>()[i];
    const float found = fast.as<float>()[i], rounded = static_cast<float>(expected);
    ASSERT_EQ(std::isnan(found), std::isnan(expected)) << op << "(" << x.as<float>()[i] << ")";
    if (std::isnan(expected) || found == rounded) continue;
    // An infinity where the largest float belongs, or the other way round, counts as the distance to the largest.
    const double error =
        std::abs(std::min(std::abs(static_cast<double>(found)), 0x1p128) - std::min(std::abs(expected), 0x1p128)) /
        ulpOf(expected);
    worst = std::max(worst, error);
    ASSERT_LE(error, GetParam().ulps) << op << "(" << x.as<float>()[i] << ") = " << found << ", expected " << expected;
    ASSERT_EQ(std::signbit(found), std::signbit(rounded)) << op << "(" << x.as<float>()[i] << ")";
  }
  RecordProperty("worst_ulps_times_100", static_cast<int>(worst * 100));
  std::printf("%s: %.2f ulp\n", op.c_str(), worst);
}

TEST_P(VectorMath, ZerosAndInfinitiesAreThoseOfTheStandardLibrary) {
  const std::string op = GetParam().op;
  const float values[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN};
  const Tensor x = Tensor::of<float>({5}, values);
  const Tensor fast = run(Backend::kCpu, op, x), exact = run(Backend::kReference, op, x);
  for (std::size_t i = 0; i < 5; ++i) {
    const float found = fast.as<float>()[i], expected = exact.as<float>()[i];
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(found)) << op << " " << values[i];
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << op << " " << values[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMath,
                         testing::Values(Case{"Exp", 3}, Case{"Log", 3}, Case{"Tanh", 4}, Case{"Erf", 4}, Case{"Sigmoid", 4},
                                         Case{"Elu", 5}, Case{"Softplus", 4}, Case{"Sqrt", 0.51}, Case{"Reciprocal", 0.51},
                                         Case{"Acos", 0.51}, Case{"Acosh", 0.51}, Case{"Asin", 0.51}, Case{"Asinh", 0.51},
                                         Case{"Atan", 0.51}, Case{"Atanh", 0.51}, Case{"Cos", 0.51}, Case{"Cosh", 0.51},
                                         Case{"Sin", 0.51}, Case{"Sinh", 0.51}, Case{"Tan", 0.51}),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace stepscope
