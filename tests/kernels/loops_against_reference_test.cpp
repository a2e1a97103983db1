// The vectorised loops over random shapes, permutations and odd tails, beside the reference kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/kernel.h"

namespace stepscope {
namespace {

Tensor randomTensor(std::mt19937& random, Dims dims) {
  Tensor tensor(DType::kF32, std::move(dims));
  std::uniform_real_distribution<float> value(0.1F, 2.0F);
  for (float& x : tensor.as<float>()) x = value(random);
  return tensor;
}

// Runs one kernel of a backend; outputs are filled with NaN first, so an element that is left out shows.
std::vector<Tensor> runKernel(Backend backend, KernelSpec spec, const std::vector<Tensor>& inputs,
                              const std::vector<Dims>& outputs) {
  std::vector<TensorView> in, out;
  std::vector<Tensor> results;
  for (const Tensor& tensor : inputs) {
    spec.inputs.push_back({tensor.dtype(), tensor.dims(), false, {}});
    in.push_back(tensor.view());
  }
  for (const Dims& dims : outputs) {
    spec.outputs.push_back({DType::kF32, dims, false, {}});
    results.emplace_back(DType::kF32, dims);
    for (float& x : results.back().as<float>()) x = NAN;
    out.push_back(results.back().view());
  }
  auto kernel = makeKernel(backend, spec);
  EXPECT_TRUE(kernel.has_value());
  if (backend == Backend::kCpu) EXPECT_NE((*kernel)->implementation(), "reference");
  const Status status = (*kernel)->run({in, out, {}, {}, {}});
  EXPECT_TRUE(status.has_value());
  return results;
}

void compareKernels(const KernelSpec& spec, const std::vector<Tensor>& inputs, const std::vector<Dims>& outputs,
                    double tolerance) {
  const auto fast = runKernel(Backend::kCpu, spec, inputs, outputs),
             slow = runKernel(Backend::kReference, spec, inputs, outputs);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    for (std::int64_t i = 0; i < fast[o].elements(); ++i) {
      const double a = elementAsDouble(fast[o].view(), i), b = elementAsDouble(slow[o].view(), i);
      ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b))) << spec.op << " output " << o << " element " << i;
    }
}

TEST(Loops, ArithmeticOfEqualShapesRowsAndScalars) {
  std::mt19937 random(3);
  for (const char* op : {"Add", "Sub", "Mul", "Div"})
    for (int round = 0; round < 60; ++round) {
      Dims full;
      for (int i = 0; i < 1 + round % 4; ++i)
        full.push_back(1 + static_cast<std::int64_t>(random() % (round % 10 == 0 ? 70 : 9)));
      Dims other = full;
      if (round % 3 == 1) other = Dims(full.begin() + static_cast<std::ptrdiff_t>(random() % full.size()), full.end());
      if (round % 3 == 2) other = round % 2 ? Dims{} : Dims{1};
      KernelSpec spec;
      spec.op = op;
      std::vector<Tensor> inputs{randomTensor(random, full), randomTensor(random, other)};
      if (round % 2) std::swap(inputs[0], inputs[1]);
      compareKernels(spec, inputs, {full}, 1e-6);
    }
}

TEST(Loops, TransposeOfEveryPermutation) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const std::size_t rank = 1 + random() % 5;
    Dims dims;
    for (std::size_t i = 0; i < rank; ++i) dims.push_back(1 + static_cast<std::int64_t>(random() % (rank <= 2 ? 90 : 9)));
    std::vector<std::int64_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    Dims out;
    for (const std::int64_t p : perm) out.push_back(dims[static_cast<std::size_t>(p)]);
    KernelSpec spec;
    spec.op = "Transpose";
    spec.attrs.set("perm", perm);
    compareKernels(spec, {randomTensor(random, dims)}, {out}, 0);
  }
}

TEST(Loops, AdamInBothForms) {
  std::mt19937 random(5);
  for (const std::int64_t decoupled : {0, 1})
    for (const std::int64_t count : {1, 7, 64, 1000, 40001}) {
      KernelSpec spec;
      spec.domain = "stepscope";
      spec.op = "AdamUpdate";
      spec.attrs = {{"beta1", 0.9F}, {"beta2", 0.999F}, {"eps", 1e-8F}, {"weight_decay", 0.01F}, {"decoupled", decoupled}};
      const Dims dims{count};
      compareKernels(
          spec,
          {randomTensor(random, dims), randomTensor(random, dims), randomTensor(random, dims), randomTensor(random, dims),
           Tensor::scalar(DType::kF32, 0.01), Tensor::scalar(DType::kI64, 3), Tensor::scalar(DType::kF32, 0.5)},
          {dims, dims, dims}, 1e-6);
    }
}

}  // namespace
}  // namespace stepscope
