// Updates of the optimizer that read gradients in a low type and write a copy of the parameter in one: next to the same
// kernel with the gradient widened before, and the copy next to the parameter rounded after it. Bits, not bounds: a float32
// number that was a low one is the same number.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope {
namespace {

Tensor draw(std::mt19937& random, std::int64_t count, float low, float high) {
  std::uniform_real_distribution<float> number(low, high);
  Tensor tensor(DType::kF32, {count});
  for (std::int64_t i = 0; i < count; ++i) storeElement(tensor.view(), i, number(random));
  return tensor;
}

std::vector<Tensor> run(Backend backend, const std::string& op, const Attributes& attrs, const std::vector<Tensor>& inputs,
                        const std::vector<std::pair<DType, Dims>>& outputs, int threads) {
  KernelSpec spec;
  spec.domain = "stepscope";
  spec.op = op;
  spec.attrs = attrs;
  spec.threads = threads;
  std::vector<TensorView> in, out;
  for (const Tensor& x : inputs) {
    spec.inputs.push_back(x.valid() ? OperandSpec{x.dtype(), x.dims(), false, {}} : OperandSpec{});
    in.push_back(x.valid() ? x.view() : TensorView{});
  }
  std::vector<Tensor> results;
  for (const auto& [dtype, dims] : outputs) {
    results.emplace_back(dtype, dims);
    spec.outputs.push_back({dtype, dims, false, {}});
    out.push_back(results.back().view());
  }
  const auto kernel = makeKernel(backend, spec);
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message);
  if (!kernel) return {};
  if (backend == Backend::kCpu) EXPECT_EQ((*kernel)->implementation(), "vector loop") << op << ": no copies in float32";
  std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  const Status status = (*kernel)->run({in, out, {aligned, (*kernel)->workspaceBytes()}, {7, 3, 11}, {}});
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  return results;
}

bool sameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// Op, low type.
class LowUpdate : public ::testing::TestWithParam<std::tuple<std::string, DType>> {};

TEST_P(LowUpdate, HasTheBitsOfAWidenedGradientAndOfARoundedParameter) {
  const auto& [op, low] = GetParam();
  const bool several = op.ends_with("s"), sgd = op.starts_with("Sgd");
  const std::size_t states = sgd ? 1 : 2;
  std::mt19937 random(11);
  // One that needs a tail, one of several blocks, one that is written past the caches and by several threads.
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{5003}, std::int64_t{300007}}) {
    const Tensor lr = Tensor::scalar(DType::kF32, 0.01), step = Tensor::scalar(DType::kI64, 3),
                 scale = Tensor::scalar(DType::kF32, 0.5);
    std::vector<Tensor> shared = sgd ? std::vector<Tensor>{lr, scale, step} : std::vector<Tensor>{lr, step, scale};
    std::vector<Tensor> wide, narrow;
    std::vector<std::pair<DType, Dims>> plain, copied;
    if (several) wide = narrow = shared;
    for (int member = 0; member < (several ? 3 : 1); ++member) {
      const std::int64_t n = count + member;
      const Tensor gradient = convertTensor(draw(random, n, -1, 1).view(), low);
      std::vector<Tensor> own{draw(random, n, -1, 1), convertTensor(gradient.view(), DType::kF32), draw(random, n, -1, 1)};
      if (!sgd) own.push_back(draw(random, n, 0, 1));
      wide.insert(wide.end(), own.begin(), own.end());
      own[1] = gradient;
      narrow.insert(narrow.end(), own.begin(), own.end());
      for (std::size_t o = 0; o <= states; ++o) {
        plain.emplace_back(DType::kF32, Dims{n});
        copied.emplace_back(DType::kF32, Dims{n});
      }
      copied.emplace_back(low, Dims{n});
    }
    if (!several) {
      wide.insert(wide.end(), shared.begin(), shared.end());
      narrow.insert(narrow.end(), shared.begin(), shared.end());
    }
    Attributes attrs{{"weight_decay", 0.1F}, {"decoupled", std::int64_t{1}}};
    if (sgd) attrs = {{"weight_decay", 0.1F}, {"momentum", 0.9F}};
    Attributes copies = attrs;
    copies.set("copies", std::int64_t{1});
    copies.set("copy_type", static_cast<std::int64_t>(low));
    for (const Backend backend : {Backend::kReference, Backend::kCpu})
      for (const int threads : {1, 2, 3}) {
        const auto expected = run(backend, op, attrs, wide, plain, threads);
        const auto found = run(backend, op, copies, narrow, copied, threads);
        ASSERT_EQ(found.size(), copied.size());
        for (std::size_t o = 0, p = 0; o < found.size(); ++o) {
          if (o % (states + 2) == states + 1)
            EXPECT_TRUE(sameBits(found[o], convertTensor(found[o - states - 1].view(), low))) << op << " copy " << o;
          else
            EXPECT_TRUE(sameBits(found[o], expected[p++])) << op << " result " << o << ", count " << count;
        }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, LowUpdate,
    ::testing::Combine(::testing::Values("AdamUpdate", "AdamUpdates", "LambUpdate", "SgdUpdate", "SgdUpdates"),
                       ::testing::Values(DType::kBF16, DType::kF16)),
    [](const auto& info) { return std::get<0>(info.param) + (std::get<1>(info.param) == DType::kBF16 ? "Bf16" : "Fp16"); });

// What a wrong index says does not depend on the kernel that meets it.
TEST(LowGatherGrad, NamesTheIndexThatIsOutOfRange) {
  std::mt19937 random(5);
  const Tensor rows = draw(random, 8, -1, 1).reshaped({2, 4}),
               table = convertTensor(draw(random, 12, -1, 1).view(), DType::kBF16);
  std::vector<std::string> told;
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    KernelSpec spec;
    spec.domain = "stepscope";
    spec.op = "GatherGrad";
    const Tensor indices = Tensor::ints(Dims{1, 3}), shape = Tensor::ints(Dims{3, 4}), addend = table.reshaped({3, 4});
    std::vector<TensorView> in;
    for (const Tensor& x : {rows, indices, shape, addend}) {
      spec.inputs.push_back({x.dtype(), x.dims(), false, {}});
      in.push_back(x.view());
    }
    Tensor y(DType::kBF16, {3, 4});
    spec.outputs = {{DType::kBF16, {3, 4}, false, {}}};
    const auto kernel = makeKernel(backend, spec);
    ASSERT_TRUE(kernel.has_value());
    std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
    std::vector<TensorView> out{y.view()};
    const Status status = (*kernel)->run({in, out, {memory.data(), memory.size()}, {7, 3, 11}, {}});
    ASSERT_FALSE(status.has_value());
    told.push_back(status.error().message);
  }
  EXPECT_EQ(told[0], told[1]);
  EXPECT_NE(told[0].find("index 3 at position 1"), std::string::npos) << told[0];
}

}  // namespace
}  // namespace stepscope
