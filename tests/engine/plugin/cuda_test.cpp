// Kernels of plugins on the device `cuda`, with the fake GPU in place of a real one: what the driver is given, and what it
// answers to a wrong image.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/plugin/plugin_registry.h"
#include "engine/train/session.h"
#include "tests/engine/plugin/bad_model.h"
#include "tests/engine/plugin/compile.h"
#include "tests/engine/plugin/noise_model.h"
#include "tests/kernels/fake_gpu/use.h"

namespace stepscope::testing {
namespace {

struct Trained {
  std::vector<double> losses;
  std::string error, onHostReason;
};

Trained trainOn(const std::filesystem::path& model, const std::filesystem::path& plugin, const std::string& device,
                const std::string& op) {
  PluginWish wish;
  wish.files = {plugin.string()};
  const auto registry = registryWith(wish);
  if (!registry) return {{}, registry.error().message, ""};
  auto session = Session::open(model, {}, {}, nullptr, *registry);
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
    if (one.op() == op && one.kind() != snapshot::KIND_COPY) trained.onHostReason = one.on_host();
  return trained;
}

Trained train(const TemporaryFolder& folder, const std::string& device, const std::string& image) {
  const auto plugin = compilePlugin(folder.path(), "bad", SS_SOURCE_DIR "/tests/engine/plugin/bad_device_plugin.cpp",
                                    fmt::format("-DIMAGE='\"{}\"'", image), "c++ -std=c++20");
  return trainOn(writeBadModel(folder), plugin, device, "Twice");
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

// Of y = x (1 + strength (2 u - 1)): one step for itself, and others that are recorded and played.
TEST(PluginOnCuda, DeviceFunctionsGetTheKeyOfTheStepThatRuns) {
  ASSERT_TRUE(useFakeGpu());
  const TemporaryFolder folder;
  const auto source = folder.write("image.cpp", R"(
#include <cstdint>
#include "plugins/abi/stepscope_plugin.h"
#include "tests/kernels/fake_gpu/compiled_thread.h"
static stepscope::fake::CompiledThread thread;
extern "C" int fakeParameters(const stepscope::fake::CompiledThread& calls) { thread = calls; return 5; }
extern "C" std::size_t fakeBytes(int i) { return i == 2 ? sizeof(ssp_random_key) : i == 4 ? sizeof(float) : 0; }
extern "C" void fakeCall(void** values) {
  const ssp_random_key& key = *static_cast<const ssp_random_key*>(values[2]);
  const auto* now = static_cast<const std::uint64_t*>(key.now);
  const std::int64_t block = thread.index(1) * 128 + thread.index(0), count = reinterpret_cast<std::int64_t>(values[3]);
  std::uint32_t words[4];
  ssp_random_words(now ? now[0] : key.seed, now ? now[1] : key.step, key.node, static_cast<std::uint64_t>(block), words);
  for (std::int64_t i = 4 * block; i < count && i < 4 * block + 4; ++i)
    static_cast<float*>(values[1])[i] = static_cast<const float*>(values[0])[i] *
        (1.0f + *static_cast<const float*>(values[4]) * (2.0f * ssp_uniform(words[i % 4]) - 1.0f));
}
)");
  const auto library = folder.path() / "image.so";
  const std::string command =
      fmt::format("c++ -std=c++20 -O1 -fPIC -shared -I {} {} -o {}", SS_SOURCE_DIR, source.string(), library.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto image = folder.write("image", "fake GPU library " + library.string() + std::string(1, '\0'));
  const auto plugin = compileCudaNoise(folder.path(), image.string());
  const auto model = writeNoiseModel(folder);
  const Trained host = trainOn(model, plugin, "cpu", "Noise"), gpu = trainOn(model, plugin, "cuda:0", "Noise");
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
