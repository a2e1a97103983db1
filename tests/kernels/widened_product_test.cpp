// Products of bfloat16 by tiles in float32, over the borders of tiles, compared with sums in double.
#include "kernels/cpu/linear/widened_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/tensor.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBatch = 2, kM = 133, kN = 391, kK = 773;  // none a multiple of a tile's extent, each more than one

Tensor randomTensor(Dims dims, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Tensor made(DType::kBF16, std::move(dims));
  for (BFloat16& x : made.as<BFloat16>()) x = BFloat16(normal(random));
  return made;
}

// With an operand stored by columns where it is turned.
MatMulParams productOf(bool turnA, bool turnB, int threads) {
  MatMulParams p;
  p.dtype = DType::kBF16;
  p.threads = threads;
  MatMulShape& s = p.shape;
  s.batch = {kBatch};
  s.aStrides = {kM * kK};
  s.bStrides = {kK * kN};
  s.yStrides = {kM * kN};
  s.m = kM, s.n = kN, s.k = kK;
  s.aRow = turnA ? 1 : kK, s.aColumn = turnA ? kM : 1;
  s.bRow = turnB ? 1 : kN, s.bColumn = turnB ? kK : 1;
  s.yRow = kN, s.yColumn = 1;
  s.y = {kBatch, kM, kN};
  return p;
}

Tensor run(const MatMulParams& params, bool bias, const std::vector<Tensor>& inputs) {
  const auto kernel = makeWidenedProduct(params, bias);
  const Tensor y(DType::kBF16, params.shape.y), room(DType::kU8, {static_cast<std::int64_t>(kernel->workspaceBytes()) + 64});
  std::vector<TensorView> in, out{y.view()};
  for (const Tensor& input : inputs) in.push_back(input.view());
  const Status status = kernel->run({in, out, {static_cast<std::byte*>(room.data()), kernel->workspaceBytes()}, {}, {}});
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  return y;
}

TEST(WidenedProduct, OfEveryOrientationIsThatInDoubleRoundedOnce) {
  const std::vector<Tensor> inputs{randomTensor({kBatch, kM, kK}, 1), randomTensor({kBatch, kK, kN}, 2)};
  for (const bool turnA : {false, true})
    for (const bool turnB : {false, true}) {
      const MatMulParams p = productOf(turnA, turnB, 2);
      const Tensor y = run(p, false, inputs), alone = run(productOf(turnA, turnB, 1), false, inputs);
      const auto a = inputs[0].as<BFloat16>(), b = inputs[1].as<BFloat16>(), made = y.as<BFloat16>(),
                 again = alone.as<BFloat16>();
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(made.size()); ++i) {
        ASSERT_EQ(made[i].bits, again[i].bits) << "the bits do not depend on the number of threads";
        if (i % 37 != 0) continue;  // every sum takes 773 terms in double
        const std::int64_t batch = i / (kM * kN), row = i / kN % kM, column = i % kN;
        double sum = 0;
        for (std::int64_t k = 0; k < kK; ++k)
          sum += static_cast<double>(a[batch * kM * kK + row * p.shape.aRow + k * p.shape.aColumn]) *
                 b[batch * kK * kN + k * p.shape.bRow + column * p.shape.bColumn];
        ASSERT_NEAR(made[i], sum, std::abs(sum) / 256 + 1e-3)
            << batch << ", " << row << ", " << column << (turnA ? " a turned" : "") << (turnB ? " b turned" : "");
      }
    }
}

TEST(WidenedProduct, AddsItsBiasAndRectifiesAllButNaN) {
  MatMulParams p = productOf(false, false, 2);
  p.beta = 1;
  p.cColumn = 1;
  p.relu = true;
  std::vector<Tensor> inputs{randomTensor({kBatch, kM, kK}, 3), randomTensor({kBatch, kK, kN}, 4), randomTensor({kN}, 5)};
  inputs[2].as<BFloat16>()[390] = BFloat16(std::nanf(""));
  const Tensor y = run(p, true, inputs);
  MatMulParams plain = productOf(false, false, 2);
  const Tensor product = run(plain, false, inputs);
  const auto made = y.as<BFloat16>(), without = product.as<BFloat16>(), bias = inputs[2].as<BFloat16>();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const float added = bias[i % kN];
    if (i % kN == 390) {
      ASSERT_TRUE(std::isnan(made[i])) << i;
      continue;
    }
    const double expected = std::max(0.0, static_cast<double>(without[i]) + added);
    ASSERT_NEAR(made[i], expected, (std::abs(without[i]) + std::abs(expected)) / 256 + 1e-3) << i;
  }
}

}  // namespace
}  // namespace stepscope::cpu
