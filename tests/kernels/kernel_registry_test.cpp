// The registry of kernels: which one it finds, what it gives to a factory, what it refuses; and that a kernel keeps to the
// number of threads that it was made for.
#include "kernels/kernel_registry.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "kernels/emulated_device.h"
#include "tests/kernels/loop_cases.h"

namespace stepscope {
namespace {

// Says which entry made it.
class Named final : public Kernel {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  Status run(const KernelCall&) override { return {}; }
  std::string implementation() const override { return name_; }
  Determinism determinism() const override { return Determinism::oneThread(); }

 private:
  std::string name_;
};

Result<std::unique_ptr<Kernel>> first(const KernelSpec&) { return std::make_unique<Named>("first"); }
Result<std::unique_ptr<Kernel>> second(const KernelSpec&) { return std::make_unique<Named>("second"); }
Result<std::unique_ptr<Kernel>> fromUser(const KernelSpec& spec) {
  return std::make_unique<Named>(*static_cast<const std::string*>(spec.user));
}
Result<std::unique_ptr<Kernel>> refuses(const KernelSpec&) { return unsupported("not this one"); }
Result<std::unique_ptr<Kernel>> fails(const KernelSpec&) { return invalid("a mistake"); }

KernelSpec specOf(std::string op, DType dtype = DType::kF32) {
  KernelSpec spec;
  spec.op = std::move(op);
  spec.inputs = spec.outputs = {{dtype, {2}, false, {}}};
  return spec;
}

std::string made(const KernelRegistry& registry, std::string_view device, const KernelSpec& spec) {
  const auto kernel = registry.make(device, spec);
  return kernel ? (*kernel)->implementation() : kernel.error().message;
}

TEST(KernelRegistry, FindsByDeviceAndElementTypeAndFallsBackToTheReferenceKernel) {
  KernelRegistry registry;
  const KernelEntry fast[] = {{"", "Op", first, false, dtypeBit(DType::kF32)},
                              {"", "Op", second, false, dtypeBit(DType::kF16) | dtypeBit(DType::kBF16)},
                              {"", "Refused", refuses},
                              {"", "Failed", fails}};
  const KernelEntry plain[] = {{"", "Op", second}, {"", "Refused", second}, {"", "Failed", second}, {"", "Plain", second}};
  ASSERT_TRUE(registry.add("gpu", fast).has_value());
  ASSERT_TRUE(registry.add(kReferenceDevice, plain).has_value());
  EXPECT_EQ(made(registry, "gpu", specOf("Op")), "first");
  EXPECT_EQ(made(registry, "gpu", specOf("Op", DType::kBF16)), "second");
  EXPECT_EQ(made(registry, "gpu", specOf("Op", DType::kF64)), "second") << "no entry of the device takes it";
  EXPECT_EQ(made(registry, "reference", specOf("Op")), "second");
  EXPECT_EQ(made(registry, "gpu", specOf("Refused")), "second");
  EXPECT_EQ(made(registry, "gpu", specOf("Plain")), "second");
  EXPECT_EQ(made(registry, "gpu", specOf("Failed")), "a mistake") << "only kUnsupported is passed on";
  EXPECT_EQ(made(registry, "gpu", specOf("None")), "kernel for 'None': none in this build");
  EXPECT_TRUE(registry.has("gpu", "", "Op"));
  EXPECT_FALSE(registry.has("gpu", "", "Plain"));
  EXPECT_FALSE(registry.has("other", "", "Op"));
  EXPECT_EQ(registry.all().size(), std::size(fast) + std::size(plain));
}

TEST(KernelRegistry, GivesAFactoryTheDataOfItsEntry) {
  std::string a = "a", b = "b";
  KernelRegistry registry;
  const KernelEntry entries[] = {{"", "A", fromUser, false, kAnyDType, &a}, {"", "B", fromUser, false, kAnyDType, &b}};
  ASSERT_TRUE(registry.add("cpu", entries).has_value());
  EXPECT_EQ(made(registry, "cpu", specOf("A")), "a");
  EXPECT_EQ(made(registry, "cpu", specOf("B")), "b");
}

TEST(KernelRegistry, RefusesASecondKernelForTheSameElements) {
  KernelRegistry registry;
  const KernelEntry one[] = {{"test", "Op", first, false, dtypeBit(DType::kF32)}};
  ASSERT_TRUE(registry.add("cpu", one).has_value());
  const KernelEntry again[] = {{"test", "Op", second}}, nothing[] = {{"", "Op", nullptr}};
  const Status twice = registry.add("cpu", again), empty = registry.add("cpu", nothing);
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(twice.error().message.find("kernel for 'test.Op' of device 'cpu'"), std::string::npos) << twice.error().message;
  EXPECT_FALSE(empty.has_value());
  EXPECT_TRUE(registry.add("gpu", again).has_value()) << "another device";
}

TEST(KernelRegistry, BuiltInKernelsAreAllOfTheLists) {
  EXPECT_EQ(builtInKernels().all().size(), referenceKernels().size() + cpuKernels().size() + cudaKernels().size());
  for (const KernelRegistry::Listed& listed : builtInKernels().all())
    EXPECT_TRUE(builtInKernels().has(kReferenceDevice, listed.entry.domain, listed.entry.op))
        << listed.entry.op << " of " << listed.device << " has no reference kernel";
}

std::set<std::string> threadsOfProcess() {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ids.insert(task.path().filename().string());
  return ids;
}

// How many threads OpenMP started for a run, in a thread of ours that has no pool yet. Counted by their ids: the pool of an
// earlier run may still be ending.
std::ptrdiff_t threadsStarted(const KernelSpec& spec, const KernelCall& call) {
  std::ptrdiff_t started = -1;
  std::thread([&] {
    omp_set_dynamic(0);
    omp_set_num_threads(4);
    const auto kernel = makeKernel(Backend::kCpu, spec);
    ASSERT_TRUE(kernel.has_value());
    const std::set<std::string> before = threadsOfProcess();
    ASSERT_TRUE((*kernel)->run(call).has_value());
    const std::set<std::string> after = threadsOfProcess();
    started = std::ranges::count_if(after, [&](const std::string& id) { return !before.contains(id); });
  }).join();
  return started;
}

// 64 channels of 32 x 32: above every size below which one thread works alone.
TEST(KernelThreads, TransposeAndReorderKeepToTheirNumber) {
  const Tensor x(DType::kF32, {2, 64, 32, 32});
  for (const char* op : {"Transpose", "Reorder"})
    for (const int threads : {1, 3}) {
      const bool transposes = std::string(op) == "Transpose";
      const Tensor y(DType::kF32, transposes ? Dims{32, 32, 64, 2} : x.dims());
      KernelSpec spec;
      spec.op = op;
      if (!transposes) spec.domain = "stepscope";
      spec.threads = threads;
      spec.inputs = {{DType::kF32, x.dims(), false, {}}};
      spec.outputs = {{DType::kF32, y.dims(), false, {}}};
      if (!transposes) spec.outputs[0].layout = Layout::kChannels16;
      const std::vector<TensorView> in{x.view()};
      std::vector<TensorView> out{y.view()};
      EXPECT_EQ(threadsStarted(spec, {in, out, {}, {}, {}}), threads - 1) << op;
    }
}

}  // namespace
}  // namespace stepscope
