// Every planted bug ends in an error that says what it is, with several orders of threads and blocks.
#include <gtest/gtest.h>

#include "kernels/emulated_device.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/planted_bugs.h"

namespace stepscope {
namespace {

Result<std::vector<Tensor>> runPlanted(const PlantedBug& bug, const std::string& device) {
  const Dims dims{kPlantedElements};
  Tensor x(DType::kF32, dims);
  for (std::int64_t i = 0; i < kPlantedElements; ++i) storeElement(x.view(), i, static_cast<double>(i % 7));
  const KernelSpec spec{
      "", bug.name, {}, {{DType::kF32, dims, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, dims}}};
  const auto made = makeEmulatedDevice(device);
  EXPECT_TRUE(made.has_value());
  const auto kernel = kernelOf(bug);
  return runOn(**made, *kernel, spec, {x});
}

class PlantedBugs : public testing::TestWithParam<PlantedBug> {};

TEST_P(PlantedBugs, AreFound) {
  for (const char* device : {"emulated", "emulated:seed=2", "emulated:seed=3", "emulated:seed=4,streams=eager"}) {
    const auto found = runPlanted(GetParam(), device);
    ASSERT_FALSE(found.has_value()) << device;
    EXPECT_EQ(found.error().code, ErrorCode::kInternal);
    const auto says = [&](const std::string& part) { return found.error().message.find(part) != std::string::npos; };
    EXPECT_TRUE(GetParam().message.empty() ? says("which nobody has written") || says("with no barrier between")
                                           : says(GetParam().message))
        << device << ": " << found.error().message;
    EXPECT_NE(found.error().message.find("kernel '"), std::string::npos) << found.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PlantedBugs, testing::ValuesIn(plantedBugs()),
                         [](const auto& info) { return info.param.name; });

TEST(Emulator, FindsNothingInSoundKernels) {
  for (const PlantedBug& kernel : soundKernels()) {
    const auto found = runPlanted(kernel, "emulated");
    EXPECT_TRUE(found.has_value()) << kernel.name << ": " << found.error().message;
  }
}

}  // namespace
}  // namespace stepscope
