// Updates of the optimizer that read a gradient in a low type and write a copy of the parameter in one, on a GPU: the bits
// of the same kernel with the gradient widened before, and the copy is the new parameter rounded.
#include <cstring>
#include <random>
#include <tuple>

#include "tests/kernels/cuda_agreement.h"

namespace stepscope {
namespace {

Tensor draw(std::mt19937& random, std::int64_t count, float low, float high) {
  std::uniform_real_distribution<float> number(low, high);
  Tensor tensor(DType::kF32, {count});
  for (std::int64_t i = 0; i < count; ++i) storeElement(tensor.view(), i, number(random));
  return tensor;
}

std::vector<Tensor> run(const std::string& op, const Attributes& attrs, const Operands& operands) {
  const KernelSpec spec = specOf("stepscope", op, attrs, operands);
  EXPECT_TRUE(deviceNamed(testedDevices().names[0]).takes(spec)) << op;
  const auto kernel = builtInKernels().make("cuda", spec);
  if (!kernel || (*kernel)->implementation().find("in float32") != std::string::npos) {
    ADD_FAILURE() << op << ": " << (kernel ? "its operands are cast" : kernel.error().message);
    return {};
  }
  const auto found = runOn(deviceNamed(testedDevices().names[0]), **kernel, spec, operands.inputs);
  EXPECT_TRUE(found.has_value()) << found.error().message;
  return found ? *found : std::vector<Tensor>{};
}

bool sameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// Op, type of the gradient, type of the copy.
class CudaLowUpdate : public ::testing::TestWithParam<std::tuple<std::string, DType, DType>> {};

TEST_P(CudaLowUpdate, HasTheBitsOfAWidenedGradientAndOfARoundedParameter) {
  SS_NEEDS_DEVICE();
  const auto& [op, gradientType, copyType] = GetParam();
  const bool several = op.ends_with("s"), sgd = op.starts_with("Sgd");
  const std::size_t states = sgd ? 1 : 2;
  std::mt19937 random(11);
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1003}, std::int64_t{5000}}) {
    const Tensor lr = Tensor::scalar(DType::kF32, 0.01), step = Tensor::scalar(DType::kI64, 3),
                 scale = Tensor::scalar(DType::kF32, 0.5);
    const std::vector<Tensor> shared = sgd ? std::vector<Tensor>{lr, scale, step} : std::vector<Tensor>{lr, step, scale};
    Operands wide, narrow;
    if (several) wide.inputs = narrow.inputs = shared;
    for (int member = 0; member < (several ? 18 : 1); ++member) {
      const std::int64_t n = several && member > 2 ? member : count + member;
      const Tensor gradient = convertTensor(draw(random, n, -1, 1).view(), gradientType);
      std::vector<Tensor> own{draw(random, n, -1, 1), convertTensor(gradient.view(), DType::kF32), draw(random, n, -1, 1)};
      if (!sgd) own.push_back(draw(random, n, 0, 1));
      wide.inputs.insert(wide.inputs.end(), own.begin(), own.end());
      own[1] = gradient;
      narrow.inputs.insert(narrow.inputs.end(), own.begin(), own.end());
      for (std::size_t o = 0; o <= states; ++o) {
        wide.outputs.emplace_back(DType::kF32, Dims{n});
        narrow.outputs.emplace_back(DType::kF32, Dims{n});
      }
      narrow.outputs.emplace_back(copyType, Dims{n});
    }
    if (!several)
      for (Operands* operands : {&wide, &narrow})
        operands->inputs.insert(operands->inputs.end(), shared.begin(), shared.end());
    Attributes attrs{{"weight_decay", 0.1F}, {"decoupled", std::int64_t{1}}};
    if (sgd) attrs = {{"weight_decay", 0.1F}, {"momentum", 0.9F}};
    Attributes copies = attrs;
    copies.set("copies", std::int64_t{1});
    copies.set("copy_type", static_cast<std::int64_t>(copyType));
    const auto expected = run(op, attrs, wide), found = run(op, copies, narrow);
    ASSERT_EQ(found.size(), narrow.outputs.size());
    for (std::size_t o = 0, p = 0; o < found.size(); ++o) {
      if (o % (states + 2) == states + 1)
        EXPECT_TRUE(sameBits(found[o], convertTensor(found[o - states - 1].view(), copyType))) << op << " copy " << o;
      else
        EXPECT_TRUE(sameBits(found[o], expected[p++])) << op << " result " << o << ", count " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaLowUpdate,
                         ::testing::Combine(::testing::Values("AdamUpdate", "AdamUpdates", "LambUpdate", "SgdUpdate",
                                                              "SgdUpdates"),
                                            ::testing::Values(DType::kBF16), ::testing::Values(DType::kBF16)),
                         [](const auto& info) { return std::get<0>(info.param) + "Bf16"; });
INSTANTIATE_TEST_SUITE_P(Fp16, CudaLowUpdate,
                         ::testing::Combine(::testing::Values("AdamUpdates", "LambUpdate", "SgdUpdate"),
                                            ::testing::Values(DType::kF16, DType::kF32), ::testing::Values(DType::kF16)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) == DType::kF32 ? "CopyAlone" : "Both");
                         });

TEST(CudaAccumulate, WidensTheGradientItself) {
  SS_NEEDS_DEVICE();
  std::mt19937 random(5);
  for (const DType low : {DType::kBF16, DType::kF16}) {
    const Tensor sum = draw(random, 1003, -1, 1), gradient = convertTensor(draw(random, 1003, -1, 1).view(), low);
    for (const bool first : {true, false}) {
      const Tensor flag = Tensor::scalar(DType::kBool, first ? 1 : 0);
      const std::vector<std::pair<DType, Dims>> outputs{{DType::kF32, {1003}}, {DType::kF32, {}}};
      const auto narrow = run("Accumulate", {}, {{sum, gradient, flag}, outputs});
      const auto wide = run("Accumulate", {}, {{sum, convertTensor(gradient.view(), DType::kF32), flag}, outputs});
      ASSERT_EQ(narrow.size(), 2U);
      ASSERT_EQ(wide.size(), 2U);
      for (std::size_t o = 0; o < 2; ++o) EXPECT_TRUE(sameBits(narrow[o], wide[o])) << dtypeName(low) << " result " << o;
    }
  }
}

}  // namespace
}  // namespace stepscope
