// Kernels of plugins for "cuda": on the emulator as a user runs them, and plugins that break the contract there.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/plugin/plugin_registry.h"
#include "engine/train/session.h"
#include "kernels/random.h"
#include "plugins/abi/stepscope_plugin.h"
#include "tests/app/cli/program.h"
#include "tests/engine/plugin/bad_model.h"
#include "tests/engine/plugin/compile.h"
#include "tests/engine/plugin/noise_model.h"

namespace stepscope::testing {
namespace {

std::filesystem::path compileDevicePlugin(const TemporaryFolder& folder, const std::string& breach) {
  return compilePlugin(folder.path(), "bad", SS_SOURCE_DIR "/tests/engine/plugin/bad_device_plugin.cpp", "-DBAD=" + breach,
                       "c++ -std=c++20");
}

// loss = mean(RMSNorm(x w, scale)^2)
std::filesystem::path writeNormModel(const TemporaryFolder& folder) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* own = model.add_opset_import();
  own->set_domain("cuda_rms_norm");
  own->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("norm");
  addInput(graph, "x", {4, 5});
  addFloats(graph, "w", {5, 6});
  addFloats(graph, "scale", {6});
  addNode(graph, "MatMul", {"x", "w"}, {"product"}, "product");
  addNode(graph, "RMSNorm", {"product", "scale"}, {"normal"}, "normal")->set_domain("cuda_rms_norm");
  addNode(graph, "Mul", {"normal", "x2"}, {"weighted"}, "weighted");
  addInput(graph, "x2", {4, 6});
  auto* mean = addNode(graph, "ReduceMean", {"weighted"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  addOutput(graph, "loss");
  return folder.write("norm.onnx", model.SerializeAsString());
}

std::vector<double> losses(const Answer& answer) {
  std::vector<double> found;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (const auto event = nlohmann::json::parse(line, nullptr, false);
        event.is_object() && event.value("event", "") == "step")
      found.push_back(event.at("loss"));
  return found;
}

TEST(CudaNorm, TrainsOnTheEmulatorAsOnTheCpu) {
  const TemporaryFolder folder;
  const auto plugin = compileCudaNorm(folder.path());
  const auto model = writeNormModel(folder);
  const auto train = [&](const std::string& device) {
    return run(fmt::format("train {} --plugin {} --json --steps 4 --lr 0.1 --seed 3 --device {}", model.string(),
                           plugin.string(), device),
               folder.path());
  };
  const Answer host = train("cpu"), device = train("emulated"), other = train("emulated:seed=9");
  for (const Answer* answer : {&host, &device, &other}) ASSERT_EQ(answer->exitCode, 0) << answer->text;
  const auto a = losses(host), b = losses(device), c = losses(other);
  ASSERT_EQ(a.size(), 4U);
  ASSERT_EQ(b.size(), 4U);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << "step " << i;
  EXPECT_EQ(b, c) << "sums in a fixed order";
  EXPECT_NE(a[0], a[3]) << "it learns";
}

TEST(CudaNorm, PassesPluginCheckOnTheEmulator) {
  const TemporaryFolder folder;
  const Answer answer = run(fmt::format("plugin check {}", compileCudaNorm(folder.path()).string()), folder.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  std::size_t rows = 0;
  for (auto at = answer.text.find("3 orders of threads"); at != std::string::npos;
       at = answer.text.find("3 orders of threads", at + 1))
    ++rows;
  EXPECT_EQ(rows, 4U) << answer.text;  // two ops, two examples
}

// The parts of a step are recorded on the emulator and played again, so that seed and step come from memory of the device.
TEST(CudaNoise, DrawsTheNumbersOfTheCpuInEveryStep) {
  const TemporaryFolder folder;
  const auto plugin = compileCudaNoise(folder.path());
  const auto model = writeNoiseModel(folder);
  const auto train = [&](const std::string& device, int steps, int seed) {
    const auto drawn = folder.path() / "drawn.npy";
    const Answer answer =
        run(fmt::format("train {} --plugin {} --json --steps {} --lr 0.1 --seed {} --device {} --fetch noisy={}",
                        model.string(), plugin.string(), steps, seed, device, drawn.string()),
            folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    return std::pair(losses(answer), contents(drawn));
  };
  const auto host = train("cpu", 4, 3), device = train("emulated", 4, 3), early = train("emulated", 1, 3),
             other = train("emulated", 4, 5);
  ASSERT_EQ(host.first.size(), 4U);
  ASSERT_EQ(device.first.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(host.first[i], device.first[i], 1e-5) << "step " << i;
  EXPECT_FALSE(host.second.empty());
  EXPECT_EQ(host.second, device.second) << "bits of the last step";
  EXPECT_NE(device.second, early.second) << "another step draws others";
  EXPECT_NE(device.second, other.second) << "another seed draws others";
}

TEST(CudaNoise, PassesPluginCheckOnTheEmulator) {
  const TemporaryFolder folder;
  const Answer answer = run(fmt::format("plugin check {}", compileCudaNoise(folder.path()).string()), folder.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("3 orders of threads, largest distance from the CPU 0.0e+00"), std::string::npos)
      << answer.text;
}

// The words that plugins draw are those of the engine.
TEST(RandomNumbers, OfPluginsAreThoseOfTheEngine) {
  for (const RandomKey& key : {RandomKey{0, 0, 0}, RandomKey{7, 3, 11}, RandomKey{~0ull, 1ull << 40, ~0u}})
    for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 33}) {
      std::uint32_t words[4];
      ssp_random_words(key.seed, key.step, key.node, block, words);
      const auto expected = randomBlock(key, block);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(words[i], expected[i]);
        EXPECT_EQ(ssp_uniform(words[i]), uniform01(key, 4 * block + i));
      }
    }
}

// What users compile with nvcc.
TEST(DeviceFunctions, OfTheSamplesAreCompiledByNvcc) {
  if (std::system("command -v nvcc > /dev/null") != 0) GTEST_SKIP() << "nvcc is not installed";
  const TemporaryFolder folder;
  for (const std::string name : {"cuda_rms_norm", "cuda_noise"}) {
    const std::string command =
        fmt::format("nvcc -ptx -std=c++17 -Werror all-warnings -I {}/plugins/abi {}/{}/kernels.cu -o {}/{}.ptx",
                    SS_SOURCE_DIR, kSamples, name, folder.path().string(), name);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_NE(contents(folder.path() / (name + ".ptx")).find(".entry"), std::string::npos);
  }
}

struct Placed {
  std::string onHostReason;
  int copies = 0;
};
// Where the node of the plugin runs on the emulator.
Placed placementOf(const TemporaryFolder& folder, const std::string& breach, const std::string& device) {
  PluginWish wish;
  wish.files = {compileDevicePlugin(folder, breach).string()};
  const auto registry = registryWith(wish);
  if (!registry) throw std::runtime_error(registry.error().message);
  auto session = Session::open(writeBadModel(folder), {}, {}, nullptr, *registry);
  if (!session) throw std::runtime_error(session.error().message);
  TrainOptions options;
  EXPECT_TRUE(applySetting(options, "device", device, "test", (*registry)->options()).has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().message);
  const auto step = (*session)->step();
  EXPECT_TRUE(step.has_value()) << step.error().message;
  Placed placed;
  const auto plan = (*session)->planSnapshot();
  for (const snapshot::Instruction& one : plan->instructions()) {
    if (one.kind() == snapshot::KIND_COPY)
      ++placed.copies;
    else if (one.op() == "Twice")
      placed.onHostReason = one.on_host();
  }
  return placed;
}

TEST(PluginDevice, RunsOnTheDeviceWhereItHasAKernelThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(placementOf(folder, "NOTHING", "emulated").onHostReason, "");
}

TEST(PluginDevice, FallsBackToTheCpuBetweenPlannedCopies) {
  const TemporaryFolder folder;
  const Placed device = placementOf(folder, "NOTHING", "emulated");
  for (const auto& [breach, name, reason] :
       {std::tuple{"CPU_ALONE", "emulated", "device 'emulated' has no kernel for it"},
        std::tuple{"TAKES_NOTHING", "emulated", "plugin 'bad': create of kernel 'bad.Twice': does not take these operands"},
        std::tuple{"NOTHING", "emulated:lacks=Twice", "device 'emulated:lacks=Twice' has no kernel for it"}}) {
    const Placed placed = placementOf(folder, breach, name);
    EXPECT_EQ(placed.onHostReason.find(reason), 0U) << placed.onHostReason;
    EXPECT_GE(placed.copies, device.copies + 2) << breach;
  }
}

struct Bad {
  const char* name;     // of bad_device_plugin.cpp
  const char* message;  // that the answer contains
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

const Bad kBad[] = {
    {"NO_CPU_KERNEL", "plugin 'bad': op 'bad.Twice': found no kernel of it for 'cpu'"},
    {"OLDER_VERSION", "plugin 'bad': kernel 'bad.Twice': found device 'cuda'; expected 'cpu'"},
    {"NO_FUNCTIONS", "plugin 'bad': kernel 'bad.Twice': found 0 functions for 'cuda'"},
    {"FUNCTION_SIZE", "plugin 'bad': kernel 'bad.Twice': found functions[0] of size 8; expected size 72"},
    {"FUNCTION_NAME", "plugin 'bad': kernel 'bad.Twice': found functions[0] without a name in letters"},
    {"NO_BODY", "plugin 'bad': kernel 'bad.Twice': found function 'twice' without a body"},
    {"NO_IMAGE_END", "plugin 'bad': kernel 'bad.Twice': found an image of 6 bytes that is neither binary nor ends with 0"},
    {"KEY_IN_1_1",
     "plugin 'bad': create of kernel 'bad.Twice': says SSP_DETERMINISM_KEYED_RANDOM; expected a plugin of ABI 1.2"},
    {"LAUNCH_KEY",
     "plugin 'bad': run of kernel 'bad.Twice': launches 'draws' with argument 1: the random key, and create does not say"},
    {"LAUNCH_SIZE", "plugin 'bad': run of kernel 'bad.Twice': launches with size 8"},
    {"LAUNCH_OTHER", "plugin 'bad': run of kernel 'bad.Twice': launches a function that the kernel does not list"},
    {"LAUNCH_BLOCKS", "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with 0 blocks; expected 1 to 2147483647"},
    {"LAUNCH_THREADS", "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with blocks of 2048 threads"},
    {"LAUNCH_COUNT", "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with 3 arguments; expected 4"},
    {"LAUNCH_BYTES", "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with argument 3 of 4 bytes; expected 8"},
    {"LAUNCH_INPUT", "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with argument 0: input 3 of 1"},
    {"LAUNCH_OUTPUT", "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with argument 1: output 1 of 1"},
    {"LAUNCH_SCRATCH", "with argument 2: 16 elements of 4 bytes from byte 32 of 64 bytes of scratch memory"},
    {"LAUNCH_WRITES_INPUT",
     "plugin 'bad': run of kernel 'bad.Twice': launches 'twice' with argument 0: input 0 to be written"},
    {"RUN_PARALLEL", "plugin 'bad': run of kernel 'bad.Twice': calls parallel on a device; expected launch"},
    {"RUN_FOLLOWS", "plugin 'bad': run of kernel 'bad.Twice': crashed (SIGSEGV)"},
    {"RUN_DEVICE_THROWS", "plugin 'bad': run of kernel 'bad.Twice': threw an exception"},
    {"BODY_OUT_OF_BOUNDS", "kernel 'twice (plugin 'bad')', block 0, thread 12: input 0: element 12 of 12"},
    {"BODY_BEFORE", "kernel 'twice (plugin 'bad')', block 0, thread 0: output 0: element -1 of 12"},
    {"BODY_UNWRITTEN",
     "kernel 'twice (plugin 'bad')', 1 blocks of 16 threads: output 0: element 11 of 12 was never written"},
    {"BODY_READS_NOTHING", "thread 0: scratch memory from byte 0: reads element 1, which nobody has written"},
    {"BODY_RACE", "kernel 'twice (plugin 'bad')', block 0, thread "},
    {"BODY_BARRIER", "kernel 'twice (plugin 'bad')', block 0, thread "},
    {"BODY_SHUFFLE", "kernel 'twice (plugin 'bad')', block 0, thread "},
    {"BODY_DEVICE_THROWS", "kernel 'twice (plugin 'bad')', block 0, thread 3: threw an exception"},
    {"BODY_CRASHES", "plugin 'bad': a device function of kernel 'bad.Twice': crashed (SIGSEGV)"},
};

Answer trainOnEmulator(const TemporaryFolder& folder, const std::string& breach) {
  return run(fmt::format("train {} --plugin {} --threads 2 --steps 2 --device emulated", writeBadModel(folder).string(),
                         compileDevicePlugin(folder, breach).string()),
             folder.path());
}

class BadDevicePlugin : public ::testing::TestWithParam<Bad> {};

TEST_P(BadDevicePlugin, EndsInAnErrorThatNamesPluginAndFunction) {
  const TemporaryFolder folder;
  const Answer answer = trainOnEmulator(folder, GetParam().name);
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("error: "), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find(GetParam().message), std::string::npos) << answer.text;
}
INSTANTIATE_TEST_SUITE_P(Contract, BadDevicePlugin, ::testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GoodDevicePlugin, OfTheSameFileTrainsAndOfAnOlderVersion) {
  for (const char* breach : {"NOTHING", "OF_1_1"}) {
    const TemporaryFolder folder;
    const Answer answer = trainOnEmulator(folder, breach);
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    EXPECT_EQ(answer.text.find("error"), std::string::npos) << answer.text;
  }
}

TEST(BadDevicePlugin, IsFoundByPluginCheck) {
  const TemporaryFolder folder;
  for (const auto& [breach, message] :
       {std::pair{"BODY_OUT_OF_BOUNDS", "input 0: element 12 of 12"}, std::pair{"LAUNCH_BLOCKS", "with 0 blocks"}}) {
    const Answer answer = run(fmt::format("plugin check {}", compileDevicePlugin(folder, breach).string()), folder.path());
    EXPECT_EQ(answer.exitCode, 1) << answer.text;
    EXPECT_NE(answer.text.find(message), std::string::npos) << answer.text;
  }
}

}  // namespace
}  // namespace stepscope::testing
