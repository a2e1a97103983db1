// Devices: memory, copies and launches; and that nobody but kernels and copies touches the memory of `mirror`.
#include "kernels/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "kernels/kernel_registry.h"

namespace stepscope {
namespace {

class EveryDevice : public ::testing::TestWithParam<const char*> {
 protected:
  Device& device() const { return **findDevice(GetParam()); }
};

TEST_P(EveryDevice, MemoryIsZeroAndKeepsWhatIsCopiedThere) {
  auto memory = device().allocate(1000);
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0u);
  std::array<std::uint8_t, 1000> host{}, back{};
  back.fill(1);
  ASSERT_TRUE(device().copy(back.data(), memory->data(), 1000, 0).has_value());
  ASSERT_TRUE(device().synchronise().has_value());
  EXPECT_EQ(back, host);
  std::iota(host.begin(), host.end(), std::uint8_t{0});
  ASSERT_TRUE(device().copy(memory->data(), host.data(), 1000, 0).has_value());
  ASSERT_TRUE(device().synchronise().has_value());
  auto other = device().allocate(1000);
  ASSERT_TRUE(other.has_value());
  ASSERT_TRUE(device().copy(other->data() + 10, memory->data() + 20, 500, 0).has_value());
  ASSERT_TRUE(device().fill(other->data(), 7, 10, 0).has_value());
  ASSERT_TRUE(device().copy(back.data(), other->data(), 1000, 0).has_value());
  ASSERT_TRUE(device().synchronise().has_value());
  EXPECT_EQ(back[9], 7);
  EXPECT_EQ(std::memcmp(back.data() + 10, host.data() + 20, 500), 0);
  EXPECT_EQ(back[510], 0);
}

TEST_P(EveryDevice, NoBytesNeedNoAddress) {
  auto memory = device().allocate(0);
  ASSERT_TRUE(memory.has_value());
  EXPECT_TRUE(device().copy(memory->data(), memory->data(), 0, 0).has_value());
  EXPECT_TRUE(device().fill(memory->data(), 1, 0, 0).has_value());
}

TEST_P(EveryDevice, AKernelRunsOnItsMemoryWithTheNumbersOfTheCpu) {
  const Dims dims{3, 50};
  Tensor x(DType::kF32, dims), expected(DType::kF32, dims);
  for (std::int64_t i = 0; i < x.elements(); ++i) storeElement(x.view(), i, 0.03 * static_cast<double>(i) - 2);
  const KernelSpec spec{"", "Tanh", {}, {{DType::kF32, dims}}, {{DType::kF32, dims}}};
  const auto onCpu = makeKernel(Backend::kCpu, spec), kernel = builtInKernels().make(device().facts().kernels, spec);
  ASSERT_TRUE(onCpu.has_value() && kernel.has_value());
  const std::array<TensorView, 1> hostIn{x.view()};
  std::array<TensorView, 1> hostOut{expected.view()};
  ASSERT_TRUE((*onCpu)->run({hostIn, hostOut, {}, {}, {}}).has_value());

  auto in = makeTensor(device(), DType::kF32, dims), out = makeTensor(device(), DType::kF32, dims);
  ASSERT_TRUE(in.has_value() && out.has_value());
  ASSERT_TRUE(writeTensor(device(), in->view(), x.view()).has_value());
  const std::array<TensorView, 1> inputs{in->view()};
  std::array<TensorView, 1> outputs{out->view()};
  ASSERT_TRUE(device().takes(spec));
  ASSERT_TRUE(device().launch(**kernel, {inputs, outputs, {}, {}, {}}).has_value());
  const auto found = readTensor(device(), out->view());
  ASSERT_TRUE(found.has_value());
  if (device().facts().kernels == "cpu") {
    EXPECT_EQ(std::memcmp(found->data(), expected.data(), expected.bytes()), 0);
  }
  for (std::int64_t i = 0; i < x.elements(); ++i)
    EXPECT_NEAR(elementAsDouble(found->view(), i), elementAsDouble(expected.view(), i), 1e-6) << i;
}

TEST_P(EveryDevice, EventsAreReachedAndWaitedFor) {
  ASSERT_TRUE(device().needStreams(2).has_value());
  const auto event = device().makeEvent();
  ASSERT_TRUE(event.has_value());
  ASSERT_TRUE(device().record(**event, 0).has_value());
  ASSERT_TRUE(device().wait(1, **event).has_value());
  ASSERT_TRUE(device().synchronise(**event).has_value());
  const auto reached = device().reached(**event);
  ASSERT_TRUE(reached.has_value());
  EXPECT_TRUE(*reached);
}

INSTANTIATE_TEST_SUITE_P(Names, EveryDevice, ::testing::Values("cpu", "mirror", "emulated"));

// A kernel that throws is an error of its launch: no exception crosses a folder.
TEST_P(EveryDevice, WhatAKernelThrowsIsAnError) {
  class Thrower final : public Kernel {
    Status run(const KernelCall&) override { throw std::bad_alloc(); }
    std::string implementation() const override { return "thrower"; }
    Determinism determinism() const override { return Determinism::fixed(); }
  } kernel;
  const Status status = device().launch(kernel, {});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
}

TEST(MirrorDeathTest, HostCodeCannotReadItsMemory) {
  Device& device = **findDevice("mirror");
  const auto tensor = makeTensor(device, DType::kF32, {4});
  ASSERT_TRUE(tensor.has_value());
  EXPECT_DEATH(static_cast<void>(tensor->clone()), "");
  EXPECT_DEATH(storeElement(tensor->view(), 0, 1.0), "");
}

TEST(MirrorDeathTest, AKernelThatIsNotLaunchedCannotEither) {
  Device& device = **findDevice("mirror");
  const auto tensor = makeTensor(device, DType::kF32, {4});
  const KernelSpec spec{"", "Tanh", {}, {{DType::kF32, {4}}}, {{DType::kF32, {4}}}};
  auto kernel = makeKernel(Backend::kCpu, spec);
  ASSERT_TRUE(tensor.has_value() && kernel.has_value());
  const std::array<TensorView, 1> in{tensor->view()};
  std::array<TensorView, 1> out{tensor->view()};
  EXPECT_DEATH(static_cast<void>((*kernel)->run({in, out, {}, {}, {}})), "");
}

TEST(Devices, AreFoundByName) {
  EXPECT_EQ(*findDevice("cpu"), &cpuDevice());
  EXPECT_EQ(*findDevice("mirror"), *findDevice("mirror"));
  const auto lacking = findDevice("mirror:MatMul,Tanh");
  ASSERT_TRUE(lacking.has_value());
  EXPECT_FALSE((*lacking)->takes({.op = "Tanh"}));
  EXPECT_FALSE((*lacking)->takes({.op = "MatMul"}));
  EXPECT_TRUE((*lacking)->takes({.op = "Exp"}));
  EXPECT_EQ(findDevice("cuda:0").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(findDevice("abacus").error().message, "device 'abacus': unknown; expected auto, cpu, cuda, emulated or mirror");
}

}  // namespace
}  // namespace stepscope
