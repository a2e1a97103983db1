// Sessions on the emulated device: the kernels of a GPU train to the numbers of the CPU, whatever the order of threads and
// streams, and what a device may suffer ends in an error that leaves the last finished step.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/step/values.h"
#include "kernels/cuda_device.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TestModel;

std::vector<TestModel> smallModels() {
  std::vector<TestModel> models{testing::digits()};
  for (TestModel& model : testing::corpusCases({"mlp", "mlp_accumulate", "branching", "gpt2_lm", "gpt2_dropout", "llama_lm",
                                                "indexing", "activations", "resnet"}))
    models.push_back(std::move(model));
  return models;
}

class EmulatedModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(EmulatedModel, TrainsToTheLossesOfTheCpu) {
  auto cpu = openSession(GetParam()), emulated = openSession(GetParam(), {{"device", "emulated"}});
  ASSERT_TRUE(cpu && emulated);
  int kernels = 0;
  const auto plan = emulated->planSnapshot();
  for (const auto& i : plan->instructions())
    if (i.kind() == snapshot::KIND_KERNEL && i.implementation().starts_with("cuda ")) ++kernels;
  EXPECT_GT(kernels, 4);
  for (int step = 0; step < 2; ++step) {
    const auto a = cpu->step(), b = emulated->step();
    ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
    EXPECT_NEAR(a->loss(), b->loss(), 2e-5 * std::max(1.0, std::abs(a->loss())));
  }
}

TEST_P(EmulatedModel, TenOrdersOfThreadsAndStreamsGiveTheSameBits) {
  std::string bits;
  std::vector<std::string> devices{"emulated", "emulated:seed=2", "emulated:seed=3,streams=eager"};
  for (int seed = 4; seed <= 10; ++seed) devices.push_back("emulated:seed=" + std::to_string(seed) + ",checks=bounds");
  for (const std::string& device : devices) {
    auto session = openSession(GetParam(), {{"device", device}});
    ASSERT_TRUE(session);
    const auto step = session->step();
    ASSERT_TRUE(step) << step.error().message;
    if (bits.empty()) bits = stateBits(*session);
    EXPECT_EQ(stateBits(*session) == bits, true) << device;
  }
}

TEST_P(EmulatedModel, SteppingBothWaysIsTheSame) {
  auto straight = openSession(GetParam(), {{"device", "emulated"}}),
       session = openSession(GetParam(), {{"device", "emulated:seed=9"}});
  ASSERT_TRUE(straight && session);
  ASSERT_TRUE(straight->step() && straight->step() && session->step());
  ASSERT_TRUE(session->beginStep().has_value());
  const auto plan = session->planSnapshot();
  const int count = plan->instructions_size();
  const auto bitsOf = [&](int i) {
    std::string bits;
    for (const auto& out : plan->instructions(i).outputs()) {
      if (out.value() < 0) continue;
      const auto view = session->stepper().value(ValueId{out.value()});
      if (view && view->dtype != DType::kString) bits.append(static_cast<const char*>(view->data), view->bytes());
    }
    return bits;
  };
  std::map<int, std::string> forward;
  for (int place = 1; place <= count; place += std::max(1, count / 6)) {
    ASSERT_TRUE(session->runTo(place).has_value());
    forward[place] = bitsOf(place - 1);
  }
  ASSERT_TRUE(session->runTo(count).has_value());
  for (auto it = forward.rbegin(); it != forward.rend(); ++it) {
    ASSERT_TRUE(session->runTo(it->first).has_value());
    EXPECT_EQ(bitsOf(it->first - 1) == it->second, true) << "instruction " << it->first - 1;
  }
  ASSERT_TRUE(session->finishStep().has_value());
  EXPECT_EQ(stateBits(*session) == stateBits(*straight), true);
}

INSTANTIATE_TEST_SUITE_P(Models, EmulatedModel, ::testing::ValuesIn(smallModels()),
                         [](const auto& info) { return info.param.name; });

// What lies between two kernels does too: several streams, and ops that fall back.
TEST(Emulated, StreamsAndFallbacksChangeNoBits) {
  const TestModel model = testing::digits();
  auto plain = openSession(model, {{"device", "emulated"}});
  ASSERT_TRUE(plain && plain->step());
  for (const char* device : {"emulated:seed=5", "emulated:seed=6", "emulated:seed=7"}) {
    auto session = openSession(model, {{"device", device}});
    ASSERT_TRUE(session && session->step());
    EXPECT_EQ(stateBits(*session) == stateBits(*plain), true) << device;
  }
  auto lacking = openSession(model, {{"device", "emulated:lacks=Relu,lacks=Softmax,lacks=ReluGrad"}});
  ASSERT_TRUE(lacking);
  EXPECT_TRUE(lacking->step().has_value());
}

// They are functions of the host, which cannot reach the memory of the device: all of them run on the CPU, between copies.
TEST(Emulated, KernelsOfReferenceRunOnTheCpu) {
  std::vector<TestModel> models = testing::corpusCases({"indexing", "branching"});
  models.push_back(testing::digits());
  for (const TestModel& model : models) {
    SCOPED_TRACE(model.name);
    auto cpu = openSession(model, {{"kernels", "reference"}}),
         emulated = openSession(model, {{"device", "emulated"}, {"kernels", "reference"}});
    ASSERT_TRUE(cpu && emulated);
    const auto plan = emulated->planSnapshot();
    int copies = 0, kernels = 0;
    for (const auto& i : plan->instructions()) {
      copies += i.kind() == snapshot::KIND_COPY;
      if (i.kind() != snapshot::KIND_KERNEL || i.implementation() == "view") continue;
      ++kernels;
      EXPECT_NE(i.on_host(), "") << i.label();
    }
    EXPECT_GT(copies, 0);
    EXPECT_GT(kernels, 4);
    for (int step = 0; step < 2; ++step) {
      const auto a = cpu->step(), b = emulated->step();
      ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
      EXPECT_NEAR(a->loss(), b->loss(), 2e-5 * std::max(1.0, std::abs(a->loss())));
    }
  }
}

// Option deterministic=off: sums of what goes to one place in the order in which threads arrive, an alert that says so once,
// and the losses of ordered sums but for their last bits. The CPU has no such kernels.
TEST(Emulated, SumsMayBeAddedInAnyOrderWhereThatIsAllowed) {
  const auto models = testing::corpusCases({"gpt2_lm"});
  if (models.empty()) GTEST_SKIP() << "the corpus is not there";
  const auto told = [](const Session& session) {
    int count = 0;
    for (const auto& alert : session.alerts())
      if (alert.code() == "not_deterministic") {
        ++count;
        EXPECT_NE(alert.message().find("added in the order in which threads arrive"), std::string::npos) << alert.message();
      }
    return count;
  };
  auto ordered = openSession(models[0], {{"device", "emulated"}}),
       any = openSession(models[0], {{"device", "emulated"}, {"deterministic", "off"}}),
       cpu = openSession(models[0], {{"deterministic", "off"}});
  ASSERT_TRUE(ordered && any && cpu);
  for (int step = 0; step < 2; ++step) {
    const auto a = ordered->step(), b = any->step(), c = cpu->step();
    ASSERT_TRUE(a && b && c) << (b ? "" : b.error().message);
    EXPECT_NEAR(a->loss(), b->loss(), 1e-5 * a->loss());
  }
  EXPECT_EQ(told(*any), 1);
  EXPECT_EQ(told(*ordered), 0);
  EXPECT_EQ(told(*cpu), 0);
}

// The name of a device is a device of its own, so every fault has its own name here.
TEST(Emulated, AFaultEndsTheStepWithATypedErrorAndNothingIsLost) {
  const TestModel model = testing::digits();
  for (const auto& [device, message] : std::map<std::string, std::string>{
           {"emulated:fail-launch=90", "launch 90"}, {"emulated:lose-device=95", "the device is lost since launch 95"}}) {
    auto session = openSession(model, {{"device", device}});
    ASSERT_TRUE(session);
    int steps = 0;
    for (; steps < 50; ++steps) {
      const auto step = session->step();
      if (step) continue;
      EXPECT_EQ(step.error().code, ErrorCode::kInternal);
      const std::string said = step.error().message;
      EXPECT_NE(said.find(message), std::string::npos) << said;
      // Which node, and what it was called with: a batch of 32.
      EXPECT_NE(said.find(" '/"), std::string::npos) << said;
      EXPECT_NE(said.find("; called with float32 ["), std::string::npos) << said;
      EXPECT_NE(said.find("[32, "), std::string::npos) << said;
      EXPECT_NE(said.find(", for float32 ["), std::string::npos) << said;
      break;
    }
    EXPECT_LT(steps, 50) << device;
    const auto again = session->step();
    ASSERT_FALSE(again.has_value());
    EXPECT_NE(again.error().message.find(message), std::string::npos) << "the error stays: " << again.error().message;
  }
}

TEST(Emulated, AnAllocationThatIsRefusedIsSaidBeforeTheFirstStep) {
  const TestModel model = testing::digits();
  auto session = Session::open(model.model, {}, {});
  ASSERT_TRUE(session.has_value());
  TrainOptions options;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"data", model.data.string()}, {"loss", model.loss}, {"device", "emulated:fail-allocation=2"}})
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  ASSERT_FALSE(built.has_value());
  EXPECT_EQ(built.error().code, ErrorCode::kOutOfMemory);
}

TEST(Emulated, DevicesThatAreNotThereSayWhatIsMissing) {
  std::map<std::string, std::string> lacking{{"emulated:no-device", "no GPU was found"},
                                             {"emulated:old-driver", "the driver knows CUDA"}};
  // Without preset cuda it is the build that has no code for a GPU, with it the machine that has no driver or no GPU.
  if (const auto gpu = describeGpu(); !gpu) lacking["cuda"] = lacking["cuda:1"] = gpu.error().message;
  for (const auto& [name, message] : lacking) {
    TrainOptions options;
    const Status status = applySetting(options, "device", name, "test");
    ASSERT_FALSE(status.has_value()) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace stepscope
