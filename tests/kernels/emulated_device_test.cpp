// The emulated device by itself: its memory, its streams that run late, and the faults that its name orders.
#include "kernels/emulated_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <set>

#include "kernels/activity.h"
#include "kernels/device_graph.h"
#include "tests/kernels/on_device.h"

namespace stepscope {
namespace {

std::unique_ptr<Device> made(const std::string& name) {
  auto device = makeEmulatedDevice(name);
  EXPECT_TRUE(device.has_value()) << device.error().message;
  return device ? std::move(*device) : nullptr;
}

TEST(EmulatedDeathTest, HostCodeCannotReadItsMemory) {
  const auto device = made("emulated");
  const auto tensor = makeTensor(*device, DType::kF32, {4});
  ASSERT_TRUE(tensor.has_value());
  EXPECT_DEATH(static_cast<void>(tensor->clone()), "");
}

TEST(Emulated, FreedMemoryIsNamed) {
  const auto device = made("emulated");
  std::array<float, 4> host{};
  std::byte* stale = nullptr;
  {
    const auto memory = device->allocate(64);
    ASSERT_TRUE(memory.has_value());
    stale = memory->data();
  }
  ASSERT_TRUE(device->copy(host.data(), stale, 16, 0).has_value());  // it runs later
  const Status status = device->synchronise();
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("an allocation of 64 bytes that was freed"), std::string::npos)
      << status.error().message;
  EXPECT_FALSE(device->allocate(64).has_value());  // the error stays
}

TEST(Emulated, ACopyBeyondItsAllocationIsNamed) {
  const auto device = made("emulated:streams=eager");
  const auto memory = device->allocate(64);
  ASSERT_TRUE(memory.has_value());
  std::array<std::byte, 80> host{};
  const Status status = device->copy(memory->data(), host.data(), 80, 0);
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("80 bytes from byte 0 of an allocation of 64"), std::string::npos);
}

TEST(Emulated, StreamsRunWhenSomebodyWaits) {
  const auto device = made("emulated");
  const auto memory = device->allocate(4);
  ASSERT_TRUE(memory.has_value() && device->needStreams(2));
  const auto event = device->makeEvent();
  ASSERT_TRUE(device->fill(memory->data(), 7, 4, 1).has_value());
  ASSERT_TRUE(device->record(**event, 1).has_value());
  EXPECT_FALSE(*device->reached(**event));
  ASSERT_TRUE(device->synchronise(**event).has_value());
  EXPECT_TRUE(*device->reached(**event));
}

// Two streams that write the same bytes: with a wait the second one always wins, without it some seed shows the other order.
TEST(Emulated, AMissingWaitShowsInSomeOrder) {
  const auto lastOf = [](int seed, bool waits) {
    const auto device = made("emulated:seed=" + std::to_string(seed));
    const auto memory = device->allocate(4);
    EXPECT_TRUE(device->needStreams(2).has_value());
    const auto event = device->makeEvent();
    EXPECT_TRUE(device->fill(memory->data(), 1, 4, 0).has_value());
    EXPECT_TRUE(device->record(**event, 0).has_value());
    if (waits) EXPECT_TRUE(device->wait(1, **event).has_value());
    EXPECT_TRUE(device->fill(memory->data(), 2, 4, 1).has_value());
    std::array<std::uint8_t, 4> back{};
    EXPECT_TRUE(device->synchronise().has_value());
    EXPECT_TRUE(device->copy(back.data(), memory->data(), 4, 0).has_value());
    EXPECT_TRUE(device->synchronise().has_value());
    return static_cast<int>(back[0]);
  };
  std::set<int> ordered, free;
  for (int seed = 0; seed < 10; ++seed) {
    ordered.insert(lastOf(seed, true));
    free.insert(lastOf(seed, false));
  }
  EXPECT_EQ(ordered, std::set<int>{2});
  EXPECT_EQ(free, (std::set<int>{1, 2}));
}

// Host memory that is written again before the copy has run.
TEST(Emulated, EarlyReuseOfHostMemoryShows) {
  const auto device = made("emulated");
  const auto memory = device->allocate(4);
  std::array<std::uint8_t, 4> host{1, 1, 1, 1}, back{};
  ASSERT_TRUE(device->copy(memory->data(), host.data(), 4, 0).has_value());
  host.fill(9);
  ASSERT_TRUE(device->copy(back.data(), memory->data(), 4, 0).has_value());
  ASSERT_TRUE(device->synchronise().has_value());
  EXPECT_EQ(back[0], 9);
}

TEST(Emulated, AGraphRunsWhenItIsReplayedBehindAllStreams) {
  const auto device = made("emulated:seed=3");
  const auto memory = device->allocate(8);
  ASSERT_TRUE(memory.has_value() && device->needStreams(2));
  GraphSource* const source = graphsOf(*device);
  ASSERT_NE(source, nullptr);
  const auto event = device->makeEvent();
  ASSERT_TRUE(source->beginGraph(nullptr).has_value());
  ASSERT_TRUE(device->fill(memory->data(), 3, 4, 1).has_value());
  ASSERT_TRUE(device->record(**event, 1) && device->wait(0, **event));
  ASSERT_TRUE(device->copy(memory->data() + 4, memory->data(), 4, 0).has_value());
  auto graph = source->endGraph();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ((*graph)->operations(), 2);
  std::array<std::uint8_t, 8> back{};
  const auto contents = [&] {
    EXPECT_TRUE(device->copy(back.data(), memory->data(), 8, 1).has_value());
    EXPECT_TRUE(device->synchronise().has_value());
    return std::pair(back[0], back[7]);
  };
  EXPECT_EQ(contents(), (std::pair<std::uint8_t, std::uint8_t>(0, 0)));  // nothing of it has run
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(device->fill(memory->data(), 9, 8, 1).has_value());  // before it, on another stream
    ASSERT_TRUE(source->replay(**graph).has_value());
    EXPECT_EQ(contents(), (std::pair<std::uint8_t, std::uint8_t>(3, 3)));
  }
}

TEST(Emulated, WhatAGraphCannotHoldIsNamed) {
  const auto device = made("emulated");
  const auto memory = device->allocate(8);
  ASSERT_TRUE(memory.has_value());
  std::array<std::byte, 8> host{};
  const auto before = device->makeEvent();
  ASSERT_TRUE(device->record(**before, 0).has_value());
  const std::vector<std::pair<const char*, std::function<Status()>>> calls{
      {"an allocation",
       [&]() -> Status {
         const auto made = device->allocate(8);
         return made ? Status() : tl::make_unexpected(made.error());
       }},
      {"a copy from or to the host", [&] { return device->copy(memory->data(), host.data(), 8, 0); }},
      {"a wait of the host", [&] { return device->synchronise(); }},
      {"a wait for an event from before it", [&] { return device->wait(0, **before); }}};
  for (const auto& [what, call] : calls) {
    ASSERT_TRUE(graphsOf(*device)->beginGraph(nullptr).has_value());
    const Status status = call();
    ASSERT_FALSE(status.has_value()) << what;
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(status.error().message.find(what), std::string::npos) << status.error().message;
    const auto graph = graphsOf(*device)->endGraph();
    ASSERT_FALSE(graph.has_value()) << what;
    EXPECT_NE(graph.error().message.find(what), std::string::npos) << graph.error().message;
  }
  EXPECT_TRUE(device->synchronise().has_value());  // and the device goes on
}

// It sees every access: a step on each element loads its operand and stores its result once.
TEST(Emulated, CountsTheBytesThatThreadsMove) {
  Device& device = deviceNamed("emulated:seed=51");
  const KernelSpec spec{
      "", "Tanh", {}, {{DType::kF32, {300}, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, {300}}}};
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value());
  ActivitySource& source = *activityOf(device);
  source.startActivity(ActivityRung::kCounters);
  activityId = 1;
  ASSERT_TRUE(runOn(device, **kernel, spec, {Tensor(DType::kF32, {300})}).has_value());
  activityId = 0;
  const Activity activity = source.takeActivity();
  ASSERT_EQ(activity.counters.size(), 1u);
  EXPECT_EQ(activity.counters[0].readBytes, 1200);
  EXPECT_EQ(activity.counters[0].writtenBytes, 1200);
  EXPECT_LT(activity.counters[0].occupancy, 0) << "not counted";
}

TEST(Emulated, OrderedFaultsAreTypedErrors) {
  const KernelSpec spec{
      "", "Tanh", {}, {{DType::kF32, {8}, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, {8}}}};
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value());
  const std::vector<Tensor> inputs{Tensor(DType::kF32, {8})};
  {
    const auto device = made("emulated:fail-allocation=2");
    EXPECT_TRUE(device->allocate(16).has_value());
    const auto refused = device->allocate(16);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
    EXPECT_TRUE(device->allocate(16).has_value());  // once
  }
  {
    const auto device = made("emulated:fail-launch=2");
    EXPECT_TRUE(runOn(*device, **kernel, spec, inputs).has_value());
    const auto failed = runOn(*device, **kernel, spec, inputs);
    ASSERT_FALSE(failed.has_value());
    EXPECT_NE(failed.error().message.find("launch 2 (kernel 'elementwise') failed"), std::string::npos)
        << failed.error().message;
    EXPECT_EQ(device->synchronise().error().message, failed.error().message);  // sticky
  }
  {
    const auto device = made("emulated:lose-device=1");
    const auto lost = runOn(*device, **kernel, spec, inputs);
    ASSERT_FALSE(lost.has_value());
    EXPECT_NE(lost.error().message.find("the device is lost since launch 1"), std::string::npos) << lost.error().message;
  }
  EXPECT_EQ(makeEmulatedDevice("emulated:no-device").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(makeEmulatedDevice("emulated:old-driver").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(makeEmulatedDevice("emulated:seed=x").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(makeEmulatedDevice("emulated:colour=red").error().code, ErrorCode::kInvalidArgument);
}

TEST(Emulated, TakesWhatHasACudaKernel) {
  const auto device = made("emulated:lacks=Tanh,lacks=Exp");
  const auto unary = [](const char* op, DType dtype = DType::kF32) {
    return KernelSpec{"", op, {}, {{dtype, {8}}}, {{dtype, {8}}}};
  };
  EXPECT_TRUE(device->takes(unary("Sqrt")));
  EXPECT_TRUE(device->takes(unary("Sqrt", DType::kBF16)));
  EXPECT_FALSE(device->takes(unary("Sqrt", DType::kF64)));
  EXPECT_FALSE(device->takes(unary("Tanh")));
  EXPECT_FALSE(device->takes(unary("Exp")));
  EXPECT_FALSE(device->takes(unary("NonZero")));
}

// Kernels know no device but the one that launches them.
TEST(Emulated, AKernelThatIsNotLaunchedSaysSo) {
  const KernelSpec spec{"", "Tanh", {}, {{DType::kF32, {8}}}, {{DType::kF32, {8}}}};
  const auto kernel = builtInKernels().make("cuda", spec);
  const Tensor x(DType::kF32, {8});
  const std::array<TensorView, 1> in{x.view()};
  std::array<TensorView, 1> out{x.view()};
  const Status status = (*kernel)->run({in, out, {}, {}, {}});
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("expected Device::launch"), std::string::npos);
}

}  // namespace
}  // namespace stepscope
