// Steps as recorded graphs of a device, on the emulated one and on the fake GPU: the bits of a step that goes launch by
// launch, whatever is random, conditional or accumulated in it; who looks into a step gets launches, and the log says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/exec/graph_pieces.h"
#include "tests/kernels/fake_gpu/use.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TestModel;

std::vector<TestModel> someModels() {
  std::vector<TestModel> models{testing::digits()};
  for (TestModel& model :
       testing::corpusCases({"mlp", "mlp_accumulate", "branching", "gpt2_dropout", "gpt2_lm", "indexing", "resnet"}))
    models.push_back(std::move(model));
  return models;
}

std::map<std::string, std::string> settingsOf(const TestModel& model, const std::string& device, bool graphs) {
  std::map<std::string, std::string> settings{
      {"device", device},           {"record", "steps"},      {"cuda.graphs", graphs ? "on" : "off"},
      {"record.statistics", "off"}, {"record.flight", "off"}, {"record.batch", "off"}};
  if (model.name == "mlp_accumulate") settings["accumulate"] = "2";
  return settings;
}

std::string saidOfGraphs(const Session& session) {
  std::string all;
  for (const snapshot::Alert& alert : session.alerts())
    if (alert.code() == "device_graphs") all += alert.message() + "\n";
  return all;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class GraphModel : public ::testing::TestWithParam<TestModel> {};

// Five steps: the first goes one by one, the second is recorded, the others are that recording with other numbers.
TEST_P(GraphModel, TrainsToTheBitsOfLaunches) {
  ASSERT_TRUE(useFakeGpu("seed=3"));
  std::string bits;
  for (const auto& [device, graphs] : {std::pair("emulated", false), std::pair("emulated:seed=8", true),
                                       std::pair("emulated:seed=4,streams=eager", true), std::pair("cuda", true)}) {
    auto session = openSession(GetParam(), settingsOf(GetParam(), device, graphs));
    ASSERT_TRUE(session);
    for (int step = 0; step < 5; ++step) {
      const auto done = session->step();
      ASSERT_TRUE(done.has_value()) << device << ": " << done.error().message;
      const StepIssue& issue = session->stepper().executor().issue();
      EXPECT_EQ(issue.graphs > 0, graphs && step > 0) << device << " step " << step << ": " << issue.reason;
      // Each branch of an If is a few instructions.
      if (issue.graphs > 0 && GetParam().name != "branching") EXPECT_GT(issue.operations, issue.alone) << device;
    }
    const std::string own = stateBits(*session);
    if (bits.empty()) bits = own;
    EXPECT_EQ(own == bits, true) << device;
    EXPECT_EQ(contains(saidOfGraphs(*session), "recorded graph"), graphs) << saidOfGraphs(*session);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GraphModel, ::testing::ValuesIn(someModels()),
                         [](const auto& info) { return info.param.name; });

TEST(Graphs, LowTypesAndASkippedUpdateKeepTheirBits) {
  std::string bits;
  for (const bool graphs : {false, true}) {
    auto settings = settingsOf(testing::digits(), "emulated:checks=bounds", graphs);
    settings.insert({{"precision", "fp16"}, {"loss-scale.init", "2097152"}, {"lr", "0.01"}});
    auto session = openSession(testing::digits(), settings);
    ASSERT_TRUE(session);
    int skipped = 0;
    for (int step = 0; step < 12; ++step) {
      const auto done = session->step();
      ASSERT_TRUE(done.has_value()) << done.error().message;
      skipped += done->skipped() ? 1 : 0;
    }
    EXPECT_GT(skipped, 0);
    EXPECT_LT(skipped, 12);
    if (bits.empty()) bits = stateBits(*session);
    EXPECT_EQ(stateBits(*session) == bits, true);
  }
}

TEST(Graphs, WhoLooksIntoAStepGetsLaunchesAndTheLogSaysSo) {
  const TestModel model = testing::digits();
  auto plain = openSession(model, settingsOf(model, "emulated", false)),
       session = openSession(model, settingsOf(model, "emulated:seed=2", true));
  ASSERT_TRUE(plain && session);
  for (int step = 0; step < 6; ++step) ASSERT_TRUE(plain->step().has_value());
  const auto graphs = [&] { return session->stepper().executor().issue().graphs; };
  ASSERT_TRUE(session->step() && session->step());
  EXPECT_GT(graphs(), 0);
  // By hand, to a place in the middle and on.
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(session->stepper().count() / 2).has_value());
  EXPECT_EQ(graphs(), 0);
  ASSERT_TRUE(session->finishStep().has_value());
  // With a watched value, and without it again.
  session->watch({session->stepper().step().loss});
  ASSERT_TRUE(session->step().has_value());
  EXPECT_EQ(graphs(), 0);
  EXPECT_TRUE(contains(saidOfGraphs(*session), "instruction by instruction: somebody looks after every instruction"))
      << saidOfGraphs(*session);
  session->watch({});
  ASSERT_TRUE(session->step() && session->step());
  EXPECT_GT(graphs(), 0);
  EXPECT_EQ(stateBits(*session) == stateBits(*plain), true);
}

TEST(Graphs, TimesOfInstructionsTakeLaunches) {
  auto session =
      openSession(testing::digits(),
                  {{"device", "emulated"}, {"record.statistics", "off"}, {"record.flight", "off"}, {"record.batch", "off"}});
  ASSERT_TRUE(session && session->step() && session->step());
  EXPECT_EQ(session->stepper().executor().issue().graphs, 0);
  EXPECT_TRUE(contains(saidOfGraphs(*session), "the times of instructions are recorded")) << saidOfGraphs(*session);
}

TEST(Graphs, ANewShapeIsRecordedAnew) {
  const TestModel model = testing::digits();
  auto session = openSession(model, settingsOf(model, "emulated", true));
  ASSERT_TRUE(session && session->step() && session->step());
  EXPECT_GT(session->stepper().executor().issue().graphs, 0);
  // Another plan: nothing of the recording before serves it.
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "memory.inplace", "off", "test").has_value());
  ASSERT_TRUE(session->setOptions(options) && session->build());
  ASSERT_TRUE(session->step().has_value());
  EXPECT_EQ(session->stepper().executor().issue().graphs, 0);
  ASSERT_TRUE(session->step().has_value());
  EXPECT_GT(session->stepper().executor().issue().graphs, 0);
}

TEST(Graphs, ADriverThatCapturesNothingIsSaidAndStepsGoOn) {
  const TestModel model = testing::digits();
  ASSERT_TRUE(useFakeGpu("no-graphs"));
  auto session = openSession(model, settingsOf(model, "cuda:000000", true)),
       plain = openSession(model, settingsOf(model, "emulated", false));
  ASSERT_TRUE(session && plain);
  for (int step = 0; step < 3; ++step) {
    const auto done = session->step();
    ASSERT_TRUE(done.has_value()) << done.error().message;
    ASSERT_TRUE(plain->step().has_value());
  }
  EXPECT_EQ(session->stepper().executor().issue().graphs, 0);
  EXPECT_TRUE(contains(saidOfGraphs(*session), "no graph could be recorded")) << saidOfGraphs(*session);
  EXPECT_EQ(stateBits(*session) == stateBits(*plain), true);
}

// A fault within a graph ends the step as one of a launch does, and the state is that of the last finished step.
TEST(Graphs, AFaultInAGraphIsATypedErrorThatStays) {
  const TestModel model = testing::digits();
  for (const auto& [orders, device, message] :
       {std::tuple("fail-launch=190", "cuda:0000000", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        std::tuple("lose-device=195", "cuda:00000000", "the device is lost: CUDA_ERROR_DEVICE_UNAVAILABLE"),
        std::tuple("", "emulated:fail-launch=190", "launch 190"),
        std::tuple("", "emulated:lose-device=195", "the device is lost since launch 195")}) {
    ASSERT_TRUE(useFakeGpu(orders));
    auto session = openSession(model, settingsOf(model, device, true));
    ASSERT_TRUE(session);
    int steps = 0;
    for (; steps < 50; ++steps) {
      const auto step = session->step();
      if (step) continue;
      EXPECT_EQ(step.error().code, ErrorCode::kInternal);
      EXPECT_TRUE(contains(step.error().message, message)) << step.error().message;
      break;
    }
    EXPECT_GT(steps, 1) << device;
    EXPECT_LT(steps, 50) << device;
    const auto again = session->step();
    ASSERT_FALSE(again.has_value());
    EXPECT_TRUE(contains(again.error().message, message)) << "the error stays: " << again.error().message;
  }
}

}  // namespace
}  // namespace stepscope
