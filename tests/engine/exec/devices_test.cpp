// Plans on a device whose memory host code cannot touch: copies are instructions, and the numbers are those of the CPU.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "engine/exec/executor.h"
#include "tests/engine/plan/step_graph.h"

namespace stepscope {
namespace {

using testing::StepGraph;

// Runs steps of a graph on a device: state in its memory, everything read and written through the executor.
class StepRun {
 public:
  StepRun(const StepGraph& step, const std::string& deviceName, PlanOptions options = {})
      : StepRun(step, **findDevice(deviceName), options) {}
  StepRun(const StepGraph& step, Device& device, PlanOptions options = {}) : step_(step), device_(&device) {
    options.device = device_;
    ExecutionPlan plan = step.plan(options);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> number(0.2F, 1.1F);
    for (const ValueId id : step.trained) {
      const Dims dims = *knownDims(*step.graph.value(id).type.shape);
      const Tensor start(DType::kF32, dims);
      for (float& x : start.as<float>()) x = number(random);
      state_[id] = *makeTensor(*device_, DType::kF32, dims);
      EXPECT_TRUE(writeTensor(*device_, state_[id].view(), start.view()).has_value());
    }
    executor = std::make_unique<Executor>(
        step.graph, std::move(plan), [this](ValueId id) { return state_.at(id); }, Backend::kCpu, builtInOperators(),
        device_);
    const Status bound = executor->bind(true, 0);
    EXPECT_TRUE(bound.has_value()) << bound.error().message;
    for (const ValueId id : step.graph.inputs()) {
      const ValueType& type = step.graph.value(id).type;
      const Tensor contents(type.dtype, *knownDims(*type.shape));
      for (std::int64_t i = 0; i < contents.elements(); ++i)
        storeElement(contents.view(), i, 0.1 * (1 + static_cast<double>(i % 7)));
      if (type.dtype == DType::kI64) storeElement(contents.view(), 0, 1);
      EXPECT_TRUE(executor->setInput(id, contents.view()).has_value());
    }
  }

  std::string bits(ValueId id) const {
    const auto tensor = executor->read(id);
    EXPECT_TRUE(tensor.has_value()) << tensor.error().message;
    return tensor ? std::string(static_cast<const char*>(tensor->data()), tensor->bytes()) : "";
  }
  std::string stateBits() const {
    std::string all;
    for (const ValueId id : step_.trained) all += bits(id);
    return all;
  }
  // Of the loss and of all parameters after a step.
  std::string step() {
    const auto ran = executor->run(0, static_cast<int>(executor->plan().instructions.size()), {});
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    return bits(step_.loss) + stateBits();
  }
  int copies() const {
    int count = 0;
    for (const Instruction& i : executor->plan().instructions) count += i.kind == InstructionKind::kCopy;
    return count;
  }

  std::unique_ptr<Executor> executor;

 private:
  const StepGraph& step_;
  Device* device_ = nullptr;
  std::map<ValueId, Tensor> state_;
};

TEST(PlanOnADevice, OfTheCpuHasNoCopies) {
  const StepGraph step(6, 40);
  StepRun run(step, "cpu");
  EXPECT_EQ(run.copies(), 0);
  EXPECT_EQ(run.executor->plan().hostArenaBytes, 0);
}

TEST(PlanOnADevice, OfMirrorCopiesTheBatchAndHasTheBitsOfTheCpu) {
  const StepGraph step(6, 40);
  StepRun cpu(step, "cpu"), mirror(step, "mirror");
  EXPECT_EQ(mirror.copies(), 3);  // x, rate and update, each once
  for (int k = 0; k < 3; ++k) EXPECT_EQ(cpu.step() == mirror.step(), true) << "step " << k;
}

TEST(PlanOnADevice, WhatItLacksRunsOnTheCpuBetweenCopies) {
  const StepGraph step(6, 40);
  StepRun cpu(step, "cpu"), mirror(step, "mirror:Relu");
  const ExecutionPlan& plan = mirror.executor->plan();
  int onHost = 0;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const std::string label = instructionLabel(plan, step.graph, static_cast<int>(i));
    if (instruction.kind == InstructionKind::kCopy) {
      const Buffer &from = plan.buffers[static_cast<std::size_t>(instruction.inputs[0])],
                   &to = plan.buffers[static_cast<std::size_t>(instruction.outputs[0])];
      EXPECT_NE(from.space, to.space) << label;
      EXPECT_EQ(from.value, to.value) << label;
      EXPECT_EQ(label, "Copy '" + from.name + "' to " + (to.space == Space::kHost ? "host" : "device"));
      EXPECT_EQ(instruction.bytesRead, from.bytes);
      continue;
    }
    EXPECT_EQ(instruction.onHost, instruction.spec().op == "Relu") << label;
    if (instruction.onHost) {
      ++onHost;
      EXPECT_EQ(instruction.onHostReason.get(), "device 'mirror:Relu' has no kernel for it");
    }
    for (const int b : instruction.inputs)
      if (b >= 0) EXPECT_EQ(plan.buffers[static_cast<std::size_t>(b)].space == Space::kHost, instruction.onHost) << label;
  }
  EXPECT_EQ(onHost, 6);
  EXPECT_EQ(mirror.copies(), 3 + 2 * 6);  // of each Relu: its input to the host, its result to the device
  for (int k = 0; k < 3; ++k) EXPECT_EQ(cpu.step() == mirror.step(), true) << "step " << k;
}

// What an op reads on the host is copied there by an instruction, and the host waits for it before the launch.
TEST(PlanOnADevice, AnOperandReadByTheHostIsCopiedThereFirst) {
  StepGraph step(3, 10);
  const auto add = [&](const char* op, std::vector<ValueId> inputs) {
    const NodeId id = step.graph.addNode("", "", op, std::move(inputs), {std::string("from ") + op});
    step.graph.mutableNode(id).phase = Phase::kForward;
    step.graph.mutableNode(id).sinceVersion = kInternalOpset;
    return id;
  };
  const ValueId update = step.graph.findValue("update");
  const NodeId difference = add("Sub", {update, update});
  const ValueId axis = step.graph.node(difference).output(0);
  const NodeId sums = add("CumSum", {step.loss, axis});
  const ValueId result = step.graph.node(sums).output(0);
  step.graph.mutableOutputs().push_back(result);
  step.inference = std::make_unique<Inference>(step.graph, builtInOperators(), InferOptions{.foldElements = -1});
  ASSERT_TRUE(step.inference->run().has_value());
  StepRun cpu(step, "cpu");
  cpu.step();
  for (const int streams : {1, 3}) {
    PlanOptions options;
    options.streams = streams;
    StepRun mirror(step, "mirror", options);
    const ExecutionPlan& plan = mirror.executor->plan();
    const Instruction& reader = plan.instructions[static_cast<std::size_t>(plan.instructionOf(sums))];
    EXPECT_FALSE(reader.onHost);
    EXPECT_EQ(reader.spec().inputs[0].space, Space::kDevice);
    EXPECT_EQ(reader.spec().inputs[1].space, Space::kHost);
    const Buffer& read = plan.buffers[static_cast<std::size_t>(reader.inputs[1])];
    EXPECT_EQ(read.value, axis);
    EXPECT_EQ(read.space, Space::kHost);
    bool hostWaits = false;
    for (const Wait& wait : reader.waits) {
      const Instruction& copy = plan.instructions[static_cast<std::size_t>(wait.instruction)];
      hostWaits |= wait.host && copy.kind == InstructionKind::kCopy && copy.outputs[0] == reader.inputs[1];
    }
    EXPECT_EQ(hostWaits, true) << streams << " streams";
    mirror.step();
    EXPECT_EQ(mirror.bits(result) == cpu.bits(result), true) << streams << " streams";
  }
}

// An edit between two instructions reaches the copy that is already there.
TEST(PlanOnADevice, AWrittenValueIsWrittenInBothSpaces) {
  const StepGraph step(4, 16);
  StepRun cpu(step, "cpu"), mirror(step, "mirror:Relu");
  const ValueId first =
      step.graph.node(step.graph.order().front()).output(0);  // read by Relu on the host, later on the device
  const Tensor contents(DType::kF32, {16});
  for (float& x : contents.as<float>()) x = 0.75F;
  std::string results[2];
  for (StepRun* run : {&cpu, &mirror}) {
    const ExecutionPlan& plan = run->executor->plan();
    const int reader = plan.instructionOf(step.graph.order()[1]), count = static_cast<int>(plan.instructions.size());
    ASSERT_TRUE(run->executor->run(0, reader, {}).has_value());
    ASSERT_TRUE(run->executor->write(first, contents.view(), reader).has_value());
    ASSERT_TRUE(run->executor->run(reader, count, {}).has_value());
    results[run == &mirror] = run->bits(step.loss);
  }
  EXPECT_EQ(results[0] == results[1], true);
  EXPECT_NE(results[0], StepRun(step, "cpu").step().substr(0, results[0].size()));
}

// The optimizer on the CPU cannot write over state of the device: what it makes becomes the state at the end of the step.
TEST(PlanOnADevice, AnUpdateOnTheCpuIsCommittedByAnInstruction) {
  const StepGraph step(5, 24);
  StepRun cpu(step, "cpu"), mirror(step, "mirror:SgdUpdate");
  const ExecutionPlan& plan = mirror.executor->plan();
  EXPECT_EQ(cpu.executor->plan().firstCommit, static_cast<int>(cpu.executor->plan().instructions.size()));
  ASSERT_EQ(static_cast<int>(plan.instructions.size()) - plan.firstCommit, 5);
  for (int i = plan.firstCommit; i < static_cast<int>(plan.instructions.size()); ++i) {
    const Instruction& commit = plan.instructions[static_cast<std::size_t>(i)];
    EXPECT_EQ(commit.kind, InstructionKind::kCommit);
    EXPECT_TRUE(commit.updateEntry);
    EXPECT_EQ(plan.buffers[static_cast<std::size_t>(commit.outputs[0])].home, Home::kState);
  }
  EXPECT_EQ(instructionLabel(plan, step.graph, plan.firstCommit).substr(0, 8), "Commit '");
  for (int k = 0; k < 3; ++k) EXPECT_EQ(cpu.step() == mirror.step(), true) << "step " << k;
}

TEST(PlanOnADevice, OnSeveralStreamsTheNumbersStay) {
  const StepGraph step(7, 24);
  StepRun cpu(step, "cpu");
  const std::string expected = cpu.step();
  for (const char* device : {"cpu", "mirror", "mirror:Relu"}) {
    PlanOptions options;
    options.streams = 3;
    StepRun run(step, device, options);
    EXPECT_EQ(run.step() == expected, true) << device;
  }
}

// Fails one launch, the way a kernel does that finds an index out of range.
class FailingDevice final : public Device {
 public:
  explicit FailingDevice(Device& inner) : inner_(inner), facts_(inner.facts()) {
    facts_.immediate = false;  // so that whatever it runs may fail
  }
  int failAt = -1;  // counted from 0 over all launches

  const DeviceFacts& facts() const override { return facts_; }
  Result<DeviceMemory> allocate(std::int64_t bytes) override { return inner_.allocate(bytes); }
  Status copy(void* to, const void* from, std::int64_t bytes, StreamId stream) override {
    return inner_.copy(to, from, bytes, stream);
  }
  Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId stream) override {
    return inner_.fill(to, value, bytes, stream);
  }
  Status needStreams(int count) override { return inner_.needStreams(count); }
  Result<std::unique_ptr<DeviceEvent>> makeEvent() override { return inner_.makeEvent(); }
  Status record(DeviceEvent& event, StreamId stream) override { return inner_.record(event, stream); }
  Status wait(StreamId stream, const DeviceEvent& event) override { return inner_.wait(stream, event); }
  Result<bool> reached(const DeviceEvent& event) const override { return inner_.reached(event); }
  Status synchronise(const DeviceEvent& event) override { return inner_.synchronise(event); }
  Status synchronise() override { return inner_.synchronise(); }
  bool takes(const KernelSpec& spec) const override { return inner_.takes(spec); }
  Status launch(Kernel& kernel, const KernelCall& call) override {
    if (failAt-- != 0) return inner_.launch(kernel, call);
    // Half of its work is done, as it is when a kernel fails in its middle.
    for (const TensorView& out : call.outputs)
      if (out.data) SS_TRY(inner_.fill(out.data, 0xff, static_cast<std::int64_t>(out.bytes() / 2), 0));
    return fail(ErrorCode::kInternal, "injected");
  }

 private:
  void free(std::byte*, std::int64_t) noexcept override {}  // nothing is allocated here
  Device& inner_;
  DeviceFacts facts_;
};

TEST(FailingStep, LeavesTheStateOfItsStartWhereverItFails) {
  const StepGraph step(6, 100);
  for (const char* name : {"cpu", "mirror"}) {
    FailingDevice device(**findDevice(name));
    StepRun run(step, device);
    run.step();
    const std::string before = run.stateBits();
    const int count = static_cast<int>(run.executor->plan().instructions.size()), launches = count - run.copies();
    ASSERT_LT(run.executor->plan().firstStateWrite, count - 3);
    for (int failAt = 0; failAt < launches; ++failAt) {
      device.failAt = failAt;
      const auto ran = run.executor->run(0, count, {.restoreState = true});
      ASSERT_FALSE(ran.has_value());
      EXPECT_NE(ran.error().message.find("injected"), std::string::npos) << ran.error().message;
      EXPECT_EQ(run.stateBits() == before, true) << name << ": launch " << failAt;
    }
    // Without it, the updates that were done before the error stand.
    device.failAt = launches - 2;
    ASSERT_FALSE(run.executor->run(0, count, {}).has_value());
    EXPECT_NE(run.stateBits(), before);
  }
}

// An index out of range, found by a kernel that runs when parameters have been written already.
TEST(FailingStep, AnErrorOfAKernelBehindTheFirstUpdateLeavesTheState) {
  StepGraph step(3, 10);
  const ValueId places = step.graph.addValue("places", {ValueKind::kTensor, DType::kI64, shapeOf({1})}, ValueRole::kInput);
  step.graph.mutableInputs().push_back(places);
  const NodeId gather = step.graph.addNode("", "", "Gather", {step.gradients.front(), places}, {"picked"});
  step.graph.mutableNode(gather).phase = Phase::kOptimizer;
  step.graph.mutableNode(gather).sinceVersion = kInternalOpset;
  step.graph.mutableOutputs().push_back(step.graph.node(gather).output(0));
  step.inference = std::make_unique<Inference>(step.graph, builtInOperators(), InferOptions{.foldElements = -1});
  ASSERT_TRUE(step.inference->run().has_value());
  for (const char* device : {"cpu", "mirror", "mirror:Gather"}) {
    StepRun run(step, device);
    const std::string before = run.stateBits();
    const int count = static_cast<int>(run.executor->plan().instructions.size());
    ASSERT_LT(run.executor->plan().firstStateWrite, run.executor->plan().instructionOf(gather));
    Tensor wrong = Tensor::ints(std::vector<std::int64_t>{99});
    ASSERT_TRUE(run.executor->setInput(places, wrong.view()).has_value());
    ASSERT_FALSE(run.executor->run(0, count, {.restoreState = true}).has_value());
    EXPECT_EQ(run.stateBits() == before, true) << device;
    ASSERT_FALSE(run.executor->run(0, count, {}).has_value());
    EXPECT_NE(run.stateBits(), before) << device;
  }
}

TEST(FailingStep, GoesOnWithTheSameNumbersAfterwards) {
  const StepGraph step(6, 100);
  FailingDevice device(cpuDevice());
  StepRun run(step, device), other(step, "cpu");
  run.step();
  other.step();
  const int count = static_cast<int>(run.executor->plan().instructions.size());
  device.failAt = count - 2;
  ASSERT_FALSE(run.executor->run(0, count, {.restoreState = true}).has_value());
  EXPECT_EQ(run.step() == other.step(), true);
}

}  // namespace
}  // namespace stepscope
