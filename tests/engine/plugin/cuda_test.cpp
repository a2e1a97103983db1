// Kernels of plugins on the device `cuda`, with the fake GPU in place of a real one: what the driver is given, and what it
// answers to a wrong image.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/plugin/plugin_registry.h"
#include "engine/train/session.h"
#include "tests/engine/plugin/bad_model.h"
#include "tests/engine/plugin/compile.h"
#include "tests/kernels/fake_gpu/use.h"

namespace stepscope::testing {
namespace {

struct Trained {
  std::vector<double> losses;
  std::string error, onHostReason;
};

Trained train(const TemporaryFolder& folder, const std::string& device, const std::string& image) {
  PluginWish wish;
  wish.files = {compilePlugin(folder.path(), "bad", SS_SOURCE_DIR "/tests/engine/plugin/bad_device_plugin.cpp",
                              fmt::format("-DIMAGE='\"{}\"'", image), "c++ -std=c++20")
                    .string()};
  const auto registry = registryWith(wish);
  if (!registry) return {{}, registry.error().message, ""};
  auto session = Session::open(writeBadModel(folder), {}, {}, nullptr, *registry);
  if (!session) return {{}, session.error().message, ""};
  TrainOptions options;
  EXPECT_TRUE(applySetting(options, "device", device, "test", (*registry)->options()).has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  if (const Status built = (*session)->build(); !built) return {{}, built.error().message, ""};
  Trained trained;
  for (int step = 0; step < 4; ++step) {
    const auto done = (*session)->step();
    if (!done) {
      trained.error = done.error().message;
      return trained;
    }
    trained.losses.push_back(done->loss());
  }
  const auto plan = (*session)->planSnapshot();
  for (const snapshot::Instruction& one : plan->instructions())
    if (one.op() == "Twice" && one.kind() != snapshot::KIND_COPY) trained.onHostReason = one.on_host();
  return trained;
}

// GPU code of the function of bad_device_plugin.cpp, as the fake driver loads it.
std::string compileImage(const TemporaryFolder& folder) {
  const auto source = folder.write("image.cpp", R"(
#include "tests/kernels/fake_gpu/compiled_thread.h"
#include <cstdint>
static stepscope::fake::CompiledThread thread;
extern "C" int fakeParameters(const stepscope::fake::CompiledThread& calls) { thread = calls; return 4; }
extern "C" void fakeCall(void** values) {
  const float* x = static_cast<const float*>(values[0]);
  float *y = static_cast<float*>(values[1]), *scratch = static_cast<float*>(values[2]);
  const std::int64_t i = thread.index(1) * 16 + thread.index(0);
  scratch[i] = 2;  // the memory that the plan gives
  if (i < reinterpret_cast<std::int64_t>(values[3])) y[i] = scratch[i] * x[i];
}
)");
  const auto library = folder.path() / "image.so";
  const std::string command =
      fmt::format("c++ -std=c++20 -O1 -fPIC -shared -I {} {} -o {}", SS_SOURCE_DIR, source.string(), library.string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return "fake GPU library " + library.string();
}

TEST(PluginOnCuda, GivesTheDriverItsImageAndAddresses) {
  ASSERT_TRUE(useFakeGpu());
  const TemporaryFolder folder;
  const Trained host = train(folder, "cpu", "PTX"), gpu = train(folder, "cuda:0", compileImage(folder));
  ASSERT_EQ(gpu.error, "");
  EXPECT_EQ(gpu.onHostReason, "");
  ASSERT_EQ(gpu.losses.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(gpu.losses[i], host.losses[i], 1e-5) << "step " << i;
}

TEST(PluginOnCuda, AWrongImageIsAnErrorThatNamesThePlugin) {
  ASSERT_TRUE(useFakeGpu());
  const TemporaryFolder folder;
  const Trained wrong = train(folder, "cuda:00", "PTX of another kind");
  EXPECT_NE(wrong.error.find("plugin 'bad': kernel 'bad.Twice': the driver does not take its image of 20 bytes"),
            std::string::npos)
      << wrong.error;
}

TEST(PluginOnCuda, AFunctionThatTheImageLacksIsNamed) {
  ASSERT_TRUE(useFakeGpu());
  const TemporaryFolder folder;
  const Trained lacking = train(folder, "cuda:000", "fake GPU code");
  EXPECT_NE(lacking.error.find("plugin 'bad': kernel 'bad.Twice': function 'twice': not in the image"), std::string::npos)
      << lacking.error;
}

}  // namespace
}  // namespace stepscope::testing
