// Sources of chains and the real NVRTC, where the machine has one: code for the architectures of the preset `cuda`.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cuda/chain_source.h"
#include "kernels/cuda/elementwise_step.h"
#include "kernels/cuda_device/nvrtc.h"

namespace stepscope {
namespace {

// Every step there is, with operands of every form, for results of both types.
TEST(GeneratedSources, AreTakenByTheRealCompiler) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  using Lies = cuda::ChainForm::Lies;
  cuda::ChainForm all;
  all.inputs = {{Lies::kAsResult, false, {}},
                {Lies::kWalked, false, {1, 0}},
                {Lies::kScalar, false, {}},
                {Lies::kAsResult, true, {}},
                {Lies::kWalked, true, {0, 1}}};
  all.extents = {31, 33};
  all.total = 31 * 33;
  all.p = 0.5F;
  for (int step = 0; step < static_cast<int>(cuda::Step::kCount); ++step)
    all.steps.push_back({step, {step % 5, static_cast<int>(all.inputs.size()) - 1 + step, (step + 2) % 5}});
  for (const bool mask : {false, true}) {
    all.maskResult = mask;
    for (const int major : {8, 9}) {
      const auto code = (*nvrtc)->codeOf(std::string(cuda::chainPrelude()) + cuda::chainSource(all), major, 0);
      ASSERT_TRUE(code.has_value()) << code.error().message << "\n" << cuda::chainSource(all);
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
