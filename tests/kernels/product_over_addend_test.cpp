// A product with a bias whose addend lies where its result goes: the addend is there once, whichever kernel is chosen. A
// bias that was written over it trained to other losses with deterministic=threads.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/fixed_parts.h"
#include "kernels/kernel_registry.h"

namespace stepscope {
namespace {

Tensor waves(const Dims& dims, double phase) {
  Tensor tensor(DType::kF32, dims);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.as<float>()[static_cast<std::size_t>(i)] = static_cast<float>(std::sin(phase + 0.7 * static_cast<double>(i)));
  return tensor;
}

TEST(ProductOverAddend, HasBiasAndAddendOnce) {
  constexpr std::int64_t m = 256, k = 128, n = 192;
  for (const bool fixed : {false, true})
    for (const int threads : {1, 3}) {
      const FixedParts scope(fixed);
      const Tensor a = waves({m, k}, 0.1), b = waves({k, n}, 0.2), bias = waves({n}, 0.3), addend = waves({m, n}, 0.4);
      KernelSpec spec;
      spec.domain = "stepscope";
      spec.op = "Product";
      spec.threads = threads;
      for (const Tensor* tensor : {&a, &b, &bias, &addend}) spec.inputs.push_back({DType::kF32, tensor->dims(), false, {}});
      spec.outputs.push_back({DType::kF32, {m, n}, false, {}});
      const auto kernel = makeKernel(Backend::kCpu, spec);
      ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
      std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
      std::byte* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
      Tensor y = addend.clone();
      std::vector<TensorView> in{a.view(), b.view(), bias.view(), y.view()}, out{y.view()};
      const Status status = (*kernel)->run({in, out, {aligned, (*kernel)->workspaceBytes()}, {}, {}});
      ASSERT_TRUE(status.has_value()) << status.error().message;
      double worst = 0;
      for (std::int64_t row = 0; row < m; row += 17)
        for (std::int64_t column = 0; column < n; ++column) {
          double expected = elementAsDouble(bias.view(), column) + elementAsDouble(addend.view(), row * n + column);
          for (std::int64_t i = 0; i < k; ++i)
            expected += elementAsDouble(a.view(), row * k + i) * elementAsDouble(b.view(), i * n + column);
          worst = std::max(worst, std::abs(elementAsDouble(y.view(), row * n + column) - expected));
        }
      EXPECT_LT(worst, 1e-3) << (*kernel)->implementation() << ", " << threads << " threads";
    }
}

}  // namespace
}  // namespace stepscope
