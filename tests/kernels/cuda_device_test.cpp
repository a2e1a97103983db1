// The device `cuda` on the fake GPU (fake_gpu): memory, copies, streams, kernels found by their names, and every fault.
#include "kernels/cuda_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "kernels/activity.h"
#include "kernels/cuda_device/device_peak.h"
#include "kernels/cuda_device/driver.h"
#include "kernels/cuda_device/gpu_code.h"
#include "kernels/device_graph.h"
#include "kernels/emulated_device.h"
#include "tests/kernels/fake_gpu/use.h"
#include "tests/kernels/on_device.h"

namespace stepscope {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::unique_ptr<Device> made(const std::string& orders = "", const std::string& name = "cuda") {
  if (!useFakeGpu(orders)) return nullptr;
  auto device = makeCudaDevice(name);
  EXPECT_TRUE(device.has_value()) << device.error().message;
  return device ? std::move(*device) : nullptr;
}
Error errorOf(const std::string& orders, const std::string& name = "cuda") {
  if (!useFakeGpu(orders)) return {};
  const auto device = makeCudaDevice(name);
  EXPECT_FALSE(device.has_value()) << orders;
  return device ? Error{} : device.error();
}
void expectSays(const Status& status, ErrorCode code, const std::string& text) {
  ASSERT_FALSE(status.has_value()) << text;
  EXPECT_EQ(status.error().code, code) << status.error().message;
  EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
}

KernelSpec tanhOf(std::int64_t count) {
  return {"", "Tanh", {}, {{DType::kF32, {count}, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, {count}}}};
}

TEST(KernelNames, AreThoseOfCppWhateverTheSymbol) {
  EXPECT_EQ(cuda::kernelName("_ZN9stepscope4cuda10softmax_cu11softmaxRowsILb1EEEvNS_3gpu6GlobalIKfEENS4_IfEEl"),
            "stepscope::cuda::softmax_cu::softmaxRows<true>");
  EXPECT_EQ(cuda::kernelName("_ZN9stepscope4cuda9reduce_cu8joinPartINS0_4PlusELNS1_4TermE0EEEvl"),
            "stepscope::cuda::reduce_cu::joinPart<stepscope::cuda::Plus, (stepscope::cuda::reduce_cu::Term)0>");
  EXPECT_EQ(cuda::kernelName("no symbol"), "");
}

TEST(CudaDevice, SaysWhatTheGpuIs) {
  const auto device = made("memory=8589934592");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->facts().name, "cuda");
  EXPECT_EQ(device->facts().kernels, "cuda");
  EXPECT_EQ(device->facts().memoryBytes, std::int64_t{8} << 30);
  EXPECT_NEAR(device->facts().flopsPerSecond, 66.9e12, 1e11);
  EXPECT_NEAR(device->facts().bytesPerSecond, 4.92e12, 1e10);
  EXPECT_FALSE(device->facts().immediate);
  const auto text = describeGpu();
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(*text, "Fake GPU, compute capability 9.0, 8.0 GiB, driver for CUDA 13.0");
}

// By its own kernels, once for a name.
TEST(CudaDevice, PeaksAreMeasuredOnIt) {
  const auto device = made("memory=30000000", "cuda:000");  // so much that a working set stays small
  ASSERT_TRUE(device);
  const cpu::MachinePeak& peak = peakOf(*device, 2);
  EXPECT_EQ(peak.threads, 0);
  EXPECT_GT(peak.operationsPerSecond, 0);
  EXPECT_LT(peak.operationsPerSecond, 1e12) << "not what the attributes say";
  EXPECT_GT(peak.bfloat16PerSecond, 0);
  EXPECT_GT(peak.float16PerSecond, 0);
  ASSERT_EQ(peak.levels.size(), 1u);
  EXPECT_GT(peak.levels[0].bytesPerSecond, 0);
  EXPECT_GT(peak.levels[0].workingSet, 0);
  EXPECT_LE(peak.levels[0].workingSet, 30'000'000 / 8);
  EXPECT_EQ(&peakOf(*device, 3), &peak);
  EXPECT_EQ(&peakOf(cpuDevice(), 1), &cpu::machinePeak(1));
}

// By timing events: kernels, copies and fills in the order of their stream, none for work that has no id, and none once they
// have been taken. The clock counts from the beginning of recording.
TEST(CudaDevice, TellsWhenItDidWhat) {
  const auto device = made("seed=3");
  ASSERT_TRUE(device);
  ActivitySource* const source = activityOf(*device);
  ASSERT_NE(source, nullptr);
  const KernelSpec spec = tanhOf(300);
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value());
  const std::vector<Tensor> inputs{Tensor(DType::kF32, {300})};
  for (int round = 0; round < 2; ++round) {
    source->startActivity(ActivityRung::kActivity);
    activityId = 7;
    ASSERT_TRUE(runOn(*device, **kernel, spec, inputs).has_value());
    activityId = 0;
    ASSERT_TRUE(device->synchronise().has_value());
    Activity activity = source->takeActivity();
    ASSERT_EQ(activity.clocks.size(), 2u);
    EXPECT_LT(activity.clocks[0].host, activity.clocks[1].host);
    EXPECT_EQ(activity.clocks[0].device, 0);
    EXPECT_LT(activity.clocks[0].device, activity.clocks[1].device);
    EXPECT_EQ(activity.lost, 0);
    ASSERT_EQ(activity.records.size(), 4u);  // the input, the fill of the result, the kernel, the result
    for (std::size_t i = 0; i < activity.records.size(); ++i) {
      const ActivityRecord& record = activity.records[i];
      EXPECT_EQ(record.id, 7u);
      EXPECT_EQ(record.stream, 0);
      EXPECT_LE(record.begin, record.end);
      EXPECT_EQ(record.correlation, i + 1);
      EXPECT_LE(record.called, record.returned);
      EXPECT_LE(activity.clocks[0].host, record.called);
      EXPECT_LE(record.end, activity.clocks[1].device);
      if (i > 0) EXPECT_LE(activity.records[i - 1].end, record.begin);
    }
    EXPECT_EQ(activity.records[0].kind, ActivityKind::kCopyIn);
    EXPECT_EQ(activity.records[1].kind, ActivityKind::kFill);
    EXPECT_EQ(activity.records[2].kind, ActivityKind::kKernel);
    EXPECT_EQ(activity.records[3].kind, ActivityKind::kCopyOut);
    EXPECT_EQ(activity.records[3].bytes, 1200);
    ASSERT_EQ(activity.kernels.size(), 1u);
    EXPECT_EQ(activity.records[2].kernel, 0);
    EXPECT_EQ(activity.kernels[0], (ActivityKernel{"elementwise", activity.kernels[0].blocks, 256, 40, 512, 0.5}));
    EXPECT_GE(activity.kernels[0].blocks, 1);
    ASSERT_TRUE(runOn(*device, **kernel, spec, inputs).has_value());
    EXPECT_TRUE(source->takeActivity().records.empty());
  }
  EXPECT_EQ(source->lostActivity(), 0);
  EXPECT_EQ(source->rung().name, "events");
  EXPECT_NE(source->rung().reason.find("CUPTI"), std::string::npos) << source->rung().reason;
}

// More bytes than all pinned pieces hold, and a last piece that is not full.
TEST(CudaDevice, MemoryIsZeroAndKeepsWhatIsCopiedThere) {
  const auto device = made();
  ASSERT_TRUE(device);
  constexpr std::int64_t kBytes = (std::int64_t{40} << 20) + 123;
  const auto memory = device->allocate(kBytes), other = device->allocate(kBytes);
  ASSERT_TRUE(memory.has_value() && other.has_value());
  Bytes host(kBytes), back(kBytes, 1);
  ASSERT_TRUE(device->copy(back.data(), memory->data(), kBytes, 0).has_value());
  ASSERT_TRUE(device->synchronise().has_value());
  EXPECT_TRUE(back == host) << "new memory is not zero";
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
  ASSERT_TRUE(device->copy(memory->data(), host.data(), kBytes, 0).has_value());
  ASSERT_TRUE(device->copy(other->data() + 10, memory->data() + 20, 500, 0).has_value());
  ASSERT_TRUE(device->fill(other->data(), 7, 10, 0).has_value());
  Bytes few(510);
  ASSERT_TRUE(device->copy(back.data(), memory->data(), kBytes, 0).has_value());
  ASSERT_TRUE(device->copy(few.data(), other->data(), 510, 0).has_value());
  ASSERT_TRUE(device->synchronise().has_value());
  EXPECT_TRUE(back == host);
  EXPECT_EQ(few[9], 7);
  EXPECT_EQ(std::memcmp(few.data() + 10, host.data() + 20, 500), 0);
}

// The host side of a copy is read and written in the order of the stream.
TEST(CudaDevice, CopiesThroughTheHostKeepTheirOrder) {
  const auto device = made();
  ASSERT_TRUE(device);
  const auto first = device->allocate(1000), second = device->allocate(1000);
  ASSERT_TRUE(first.has_value() && second.has_value());
  Bytes between(1000, 1), last(1000), beside(1000);
  ASSERT_TRUE(device->fill(first->data(), 5, 1000, 0).has_value());
  ASSERT_TRUE(device->copy(between.data(), first->data(), 1000, 0).has_value());
  ASSERT_TRUE(device->copy(second->data(), between.data(), 1000, 0).has_value());
  ASSERT_TRUE(device->copy(beside.data(), between.data(), 1000, 0).has_value());
  ASSERT_TRUE(device->copy(last.data(), second->data(), 1000, 0).has_value());
  EXPECT_EQ(between[0], 1) << "it runs when somebody waits";
  ASSERT_TRUE(device->synchronise().has_value());
  EXPECT_EQ(last, Bytes(1000, 5));
  EXPECT_EQ(beside, Bytes(1000, 5));
}

TEST(CudaDeathTest, HostCodeCannotReadItsMemory) {
  const auto device = made();
  ASSERT_TRUE(device);
  const auto tensor = makeTensor(*device, DType::kF32, {4});
  ASSERT_TRUE(tensor.has_value());
  EXPECT_DEATH(static_cast<void>(tensor->clone()), "");
}

// Two streams that write the same bytes: with a wait the second one always wins, without it some seed shows the other order.
TEST(CudaDevice, EventsOrderStreams) {
  const auto lastOf = [](int seed, bool waits) {
    const auto device = made("seed=" + std::to_string(seed));
    const auto memory = device->allocate(4);
    EXPECT_TRUE(device->needStreams(2).has_value());
    const auto event = device->makeEvent();
    EXPECT_TRUE(*device->reached(**event)) << "of an event that nobody has recorded";
    EXPECT_TRUE(device->fill(memory->data(), 1, 4, 0).has_value());
    EXPECT_TRUE(device->record(**event, 0).has_value());
    EXPECT_FALSE(*device->reached(**event));
    if (waits) EXPECT_TRUE(device->wait(1, **event).has_value());
    EXPECT_TRUE(device->fill(memory->data(), 2, 4, 1).has_value());
    EXPECT_TRUE(device->synchronise(**event).has_value());
    EXPECT_TRUE(*device->reached(**event));
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

// A graph is ordered with all streams that there are when it is replayed, not with those alone that it was recorded on.
TEST(CudaDevice, AGraphWaitsForStreamsThatCameLater) {
  for (int seed = 0; seed < 10; ++seed) {
    const auto device = made("seed=" + std::to_string(seed));
    ASSERT_TRUE(device);
    const auto memory = device->allocate(8);
    ASSERT_TRUE(memory.has_value());
    GraphSource* const source = graphsOf(*device);
    ASSERT_TRUE(source->beginGraph(nullptr).has_value());
    ASSERT_TRUE(device->copy(memory->data() + 4, memory->data(), 4, 0).has_value());
    const auto graph = source->endGraph();
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    ASSERT_TRUE(device->needStreams(6).has_value());
    for (const StreamId stream : {StreamId{5}, StreamId{3}}) {
      ASSERT_TRUE(device->fill(memory->data(), static_cast<std::uint8_t>(stream), 4, stream).has_value());
      ASSERT_TRUE(source->replay(**graph).has_value());
      std::array<std::uint8_t, 8> back{};
      ASSERT_TRUE(device->copy(back.data(), memory->data(), 8, 4).has_value());
      ASSERT_TRUE(device->synchronise().has_value());
      EXPECT_EQ(back[7], stream);
    }
  }
}

// A context belongs to a thread: every call brings it along.
TEST(CudaDevice, MayBeUsedFromAnyThread) {
  const auto device = made();
  ASSERT_TRUE(device);
  std::thread([&] {
    const auto memory = device->allocate(100);
    ASSERT_TRUE(memory.has_value()) << memory.error().message;
    Bytes back(100, 1);
    ASSERT_TRUE(device->copy(back.data(), memory->data(), 100, 0).has_value());
    ASSERT_TRUE(device->synchronise().has_value());
    EXPECT_EQ(back, Bytes(100, 0));
  }).join();
}

// Parameters arrive as the emulator has them: the same bits for kernels whose parameters differ in form.
TEST(CudaDevice, KernelsGiveTheBitsOfTheEmulator) {
  const auto device = made("seed=3");
  ASSERT_TRUE(device);
  const auto operand = [](DType dtype, Dims dims) {
    return OperandSpec{dtype, std::move(dims), false, {}, Layout::kPlain, Space::kDevice};
  };
  const auto f32 = [&](Dims dims) { return operand(DType::kF32, std::move(dims)); };
  const std::vector<KernelSpec> specs{tanhOf(1003),
                                      {"", "Add", {}, {f32({7, 1, 5}), f32({3, 1})}, {f32({7, 3, 5})}},
                                      {"", "Softmax", {}, {f32({9, 300})}, {f32({9, 300})}},
                                      {"", "LayerNormalization", {}, {f32({6, 40}), f32({40}), f32({40})}, {f32({6, 40})}},
                                      {"", "Transpose", {{"perm", Dims{2, 0, 1}}}, {f32({4, 5, 6})}, {f32({6, 4, 5})}},
                                      {"", "ReduceSum", {}, {f32({30, 700})}, {f32({1, 1})}},
                                      {"", "MatMul", {}, {f32({2, 33, 20}), f32({2, 20, 35})}, {f32({2, 33, 35})}},
                                      {"", "Cast", {{"to", std::int64_t{10}}}, {f32({77})}, {operand(DType::kF16, {77})}},
                                      {"", "Exp", {}, {operand(DType::kBF16, {70})}, {operand(DType::kBF16, {70})}},
                                      {"stepscope",
                                       "AdamUpdate",
                                       {{"weight_decay", 0.1F}},
                                       {f32({50}), f32({50}), f32({50}), f32({50}), f32({}), operand(DType::kI64, {})},
                                       {f32({50}), f32({50}), f32({50})}}};
  std::mt19937 random(4);
  for (const KernelSpec& spec : specs) {
    std::vector<Tensor> inputs;
    for (const OperandSpec& input : spec.inputs) {
      Tensor values(DType::kF32, input.dims);
      for (float& value : values.as<float>())
        value = input.dims.empty() ? 3 : std::uniform_real_distribution<float>(0, 2)(random);
      inputs.push_back(convertTensor(values.view(), input.dtype));
    }
    ASSERT_TRUE(device->takes(spec)) << spec.op;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << spec.op;
    const auto found = runOn(*device, **kernel, spec, inputs),
               expected = runOn(deviceNamed("emulated"), **kernel, spec, inputs);
    ASSERT_TRUE(found.has_value()) << spec.op << ": " << found.error().message;
    ASSERT_TRUE(expected.has_value()) << spec.op << ": " << expected.error().message;
    for (std::size_t o = 0; o < found->size(); ++o)
      EXPECT_EQ(std::memcmp((*found)[o].data(), (*expected)[o].data(), (*found)[o].bytes()), 0)
          << spec.op << " output " << o;
  }
}

TEST(CudaDevice, AWrongOperandIsNamedAndTheDeviceGoesOn) {
  const auto device = made();
  ASSERT_TRUE(device);
  const std::int64_t indices[] = {1, 9, 0, 12};
  const KernelSpec spec{"",
                        "Gather",
                        {},
                        {{DType::kF32, {4, 3}, false, {}, Layout::kPlain, Space::kDevice},
                         {DType::kI64, {4}, false, {}, Layout::kPlain, Space::kDevice}},
                        {{DType::kF32, {4, 3}}}};
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value());
  const auto wrong = runOn(*device, **kernel, spec, {Tensor(DType::kF32, {4, 3}), Tensor::ints(indices)});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(wrong.error().message.find("index 9 at position 1"), std::string::npos) << wrong.error().message;
  const std::int64_t right[] = {1, 0, 2, 3};
  for (int round = 0; round < 1100; ++round)  // more launches than there are places for complaints
    ASSERT_TRUE(runOn(*device, **kernel, spec, {Tensor(DType::kF32, {4, 3}), Tensor::ints(right)}).has_value()) << round;
}

TEST(CudaFaults, WhatLacksIsSaidBeforeAnythingRuns) {
  EXPECT_EQ(errorOf("no-device").code, ErrorCode::kUnsupported);
  EXPECT_EQ(errorOf("no-device").message, "device 'cuda': no GPU was found; expected a GPU, or --device cpu or emulated");
  EXPECT_NE(errorOf("old-driver").message.find("the driver knows CUDA 11.4; expected 12.0 or newer"), std::string::npos);
  EXPECT_NE(errorOf("old-gpu").message.find("Fake GPU has compute capability 7.5; expected 8.0 or newer"),
            std::string::npos);
  EXPECT_NE(errorOf("wrong-code").message.find("GPU code 'fake': CUDA_ERROR_NO_BINARY_FOR_GPU"), std::string::npos);
  EXPECT_NE(errorOf("", "cuda:3").message.find("there is one GPU; expected cuda:0"), std::string::npos);
  for (const char* orders : {"old-driver", "old-gpu", "wrong-code"})
    EXPECT_EQ(errorOf(orders).code, ErrorCode::kUnsupported);
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"})
    EXPECT_EQ(errorOf("", name).code, ErrorCode::kInvalidArgument) << name;
}

TEST(CudaFaults, GpuCodeThatLacksIsNamed) {
  ASSERT_TRUE(useFakeGpu());
  setenv("STEPSCOPE_GPU_CODE", "/nowhere", 1);
  EXPECT_NE(makeCudaDevice("cuda").error().message.find("STEPSCOPE_GPU_CODE '/nowhere': no .fatbin files"),
            std::string::npos);
  const CodeFolder folder("little_code");
  std::ofstream(folder.path() / "little.fatbin") << "fake GPU code";
  std::ofstream(folder.path() / "little.names") << "_ZN9stepscope4cuda1fEv\n";
  setenv("STEPSCOPE_GPU_CODE", folder.path().c_str(), 1);
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value()) << device.error().message;
  const auto kernel = builtInKernels().make("cuda", tanhOf(8));
  const auto result = runOn(**device, **kernel, tanhOf(8), {Tensor(DType::kF32, {8})});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message.find("elementwise_cu::elementwise<"), std::string::npos) << result.error().message;
}

TEST(CudaFaults, MemoryThatDoesNotSufficeIsSaidWithWhatIsFree) {
  const auto small = made("memory=100000");
  ASSERT_TRUE(small);
  const auto first = small->allocate(60000);
  ASSERT_TRUE(first.has_value());
  const auto refused = small->allocate(50000);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(refused.error().message.find("allocation of 50000 bytes: 40000 of 100000 bytes are free"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(small->allocate(40000).has_value());
  const auto device = made("fail-allocation=2");
  ASSERT_TRUE(device && device->allocate(16).has_value());
  EXPECT_EQ(device->allocate(16).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(device->allocate(16).has_value());  // once
}

// What other programs have is not there for a plan; what this one has is.
TEST(CudaDevice, HasRoomForWhatIsFreeAndWhatIsItsOwn) {
  const auto device = made("memory=100000,others=30000");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->facts().memoryBytes, 100000);
  EXPECT_EQ(device->roomBytes(), 70000);
  const auto own = device->allocate(50000);
  ASSERT_TRUE(own.has_value()) << own.error().message;
  EXPECT_EQ(device->roomBytes(), 70000);
  EXPECT_FALSE(device->allocate(20001).has_value());
}

TEST(CudaFaults, AKernelThatFailsIsToldByEveryLaterCall) {
  const auto device = made("fail-launch=2");
  ASSERT_TRUE(device);
  const auto kernel = builtInKernels().make("cuda", tanhOf(8));
  const std::vector<Tensor> inputs{Tensor(DType::kF32, {8})};
  EXPECT_TRUE(runOn(*device, **kernel, tanhOf(8), inputs).has_value());
  const auto failed = runOn(*device, **kernel, tanhOf(8), inputs);
  ASSERT_FALSE(failed.has_value());
  const std::string text =
      "a kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered), found at: waiting for the "
      "GPU; the "
      "last kernel put on a stream was 'elementwise'";
  EXPECT_NE(failed.error().message.find(text), std::string::npos) << failed.error().message;
  expectSays(device->synchronise(), ErrorCode::kInternal, text);
  expectSays(device->fill(nullptr, 0, 4, 0), ErrorCode::kInternal, text);
  EXPECT_EQ(device->allocate(4).error().message, failed.error().message);
  EXPECT_EQ(device->makeEvent().error().message, failed.error().message);
}

TEST(CudaFaults, ADeviceThatIsLostSaysSo) {
  const auto device = made("lose-device=1");
  ASSERT_TRUE(device);
  const auto kernel = builtInKernels().make("cuda", tanhOf(8));
  const auto lost = runOn(*device, **kernel, tanhOf(8), {Tensor(DType::kF32, {8})});
  ASSERT_FALSE(lost.has_value());
  EXPECT_NE(lost.error().message.find(
                "the device is lost: CUDA_ERROR_DEVICE_UNAVAILABLE, found at: kernel 'elementwise', 1 blocks of"),
            std::string::npos)
      << lost.error().message;
  EXPECT_EQ(device->synchronise().error().message, lost.error().message);
}

TEST(CudaFaults, PeaksOfAGpuThatIsLostAreThoseOfItsAttributes) {
  const auto lost = made("lose-device=1", "cuda:00");
  ASSERT_TRUE(lost);
  const cpu::MachinePeak& told = peakOf(*lost, 2);
  EXPECT_EQ(told.operationsPerSecond, lost->facts().flopsPerSecond);
  EXPECT_GT(told.operationsPerSecond, 1e12);
  EXPECT_EQ(told.levels.at(0).bytesPerSecond, lost->facts().bytesPerSecond);
}

// Which errors end the device is what the driver's documentation says of them.
TEST(CudaFaults, ErrorsThatStayAreTold) {
  for (const cuda::CuResult lost : {cuda::kCuContained, cuda::kCuEccUncorrectable, cuda::kCuContextDestroyed,
                                    cuda::kCuMpsClientTerminated, cuda::kCuExternalDevice})
    EXPECT_TRUE(cuda::isLoss(lost) && cuda::isSticky(lost)) << lost;
  for (const cuda::CuResult kernel : {cuda::kCuIllegalAddress, cuda::kCuMisalignedAddress, cuda::kCuTensorMemoryLeak})
    EXPECT_TRUE(cuda::isSticky(kernel) && !cuda::isLoss(kernel)) << kernel;
  for (const cuda::CuResult passes : {cuda::kCuOutOfMemory, cuda::kCuLaunchOutOfResources, cuda::kCuCaptureInvalidated})
    EXPECT_FALSE(cuda::isSticky(passes)) << passes;
}

TEST(CudaFaults, AStreamThatIsNotThereIsNamed) {
  const auto device = made();
  ASSERT_TRUE(device);
  const auto memory = device->allocate(4);
  expectSays(device->fill(memory->data(), 1, 4, 3), ErrorCode::kInternal, "stream 3; expected one of 1");
}

TEST(CudaByName, AutoIsTheGpuWhereThereIsOne) {
  ASSERT_TRUE(useFakeGpu());
  const auto device = findDevice("auto");
  ASSERT_TRUE(device.has_value());
  EXPECT_EQ((*device)->facts().name, "cuda");
  EXPECT_EQ(*device, *findDevice("cuda"));
}

}  // namespace
}  // namespace stepscope
