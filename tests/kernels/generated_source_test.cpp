// Sources of chains and the real NVRTC, where the machine has one: code for the architectures of the preset `cuda`.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cuda/chain_source.h"
#include "kernels/cuda/elementwise_step.h"
#include "kernels/cuda_device/nvrtc.h"

namespace stepscope {
namespace {

// Every step there is, with operands of every form and type, for results of every type and for sums.
TEST(GeneratedSources, AreTakenByTheRealCompiler) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  using Lies = cuda::ChainForm::Lies;
  cuda::ChainForm all;
  using Type = cuda::ChainType;
  all.inputs = {{Lies::kAsResult, Type::kFloat, {}},    {Lies::kWalked, Type::kFloat, {1, 0}},
                {Lies::kScalar, Type::kFloat, {}},      {Lies::kAsResult, Type::kBool, {}},
                {Lies::kWalked, Type::kBool, {0, 1}},   {Lies::kAsResult, Type::kFloat16, {}},
                {Lies::kAsResult, Type::kBFloat16, {}}, {Lies::kWalked, Type::kBFloat16, {1, 0}},
                {Lies::kScalar, Type::kFloat16, {}}};
  const int inputs = static_cast<int>(all.inputs.size());
  all.extents = {31, 33};
  all.total = 31 * 33;
  all.p = 0.5F;
  for (int step = 0; step < static_cast<int>(cuda::Step::kCount); ++step)
    all.steps.push_back({step, {step % inputs, inputs - 1 + step, (step + 2) % inputs}});
  std::vector<cuda::ChainForm> forms;
  for (const Type result : {Type::kFloat, Type::kBool, Type::kFloat16, Type::kBFloat16}) {
    all.result = result;
    forms.push_back(all);
  }
  for (const auto& sum :
       {cuda::ChainSum{true, 256, 31, 33, 2}, cuda::ChainSum{true, 32, 31, 33, 1}, cuda::ChainSum{false, 256, 31, 33, 4}}) {
    forms.push_back(all);
    forms.back().sum = sum;
  }
  for (const cuda::ChainForm& form : forms) {
    for (const int major : {8, 9}) {
      const auto code = (*nvrtc)->codeOf(std::string(cuda::chainPrelude()) + cuda::chainSource(form), major, 0);
      ASSERT_TRUE(code.has_value()) << code.error().message << "\n" << cuda::chainSource(form);
      EXPECT_EQ(std::memcmp(code->data(),
                            "\x7f"
                            "ELF",
                            4),
                0);
    }
  }
  all.total = (std::int64_t{1} << 33) + 1;
  all.extents = {all.total, 1};
  EXPECT_TRUE((*nvrtc)->codeOf(std::string(cuda::chainPrelude()) + cuda::chainSource(all), 9, 0).has_value());
  const auto wrong = (*nvrtc)->codeOf("extern \"C\" __global__ void generated() { nothing(); }", 9, 0);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("nothing"), std::string::npos) << wrong.error().message;
}

}  // namespace
}  // namespace stepscope
