// Watched values: their numbers are those of the moment in which they were computed, in every step, however it ran.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::languageModel;
using testing::openSession;
using testing::stateBits;
using testing::TestModel;
using Statistics = std::map<std::string, snapshot::TensorStatistics>;  // by name of the value

// What the instruction computes: not state that it writes, nor a copy in another space.
std::vector<ValueId> computedBy(const Stepper& stepper, const Instruction& instruction) {
  std::vector<ValueId> values;
  if (instruction.kind != InstructionKind::kKernel) return values;
  for (const int b : instruction.outputs) {
    const ValueId id = b < 0 ? ValueId{} : stepper.plan().buffers[static_cast<std::size_t>(b)].value;
    if (id && stepper.graph().value(id).role == ValueRole::kNodeOutput) values.push_back(id);
  }
  return values;
}

std::vector<ValueId> computedValues(const Session& session) {
  std::vector<ValueId> values;
  for (const Instruction& instruction : session.stepper().plan().instructions)
    for (const ValueId id : computedBy(session.stepper(), instruction)) values.push_back(id);
  return values;
}

int makerOf(const Stepper& stepper, ValueId id) { return stepper.plan().instructionOf(stepper.graph().value(id).producer); }

// The first value whose memory is another one's when the step ends, and still its own when it has just been computed.
ValueId firstThatGoes(const Session& session) {
  const Stepper& stepper = session.stepper();
  const auto intact = [&](ValueId id, int position) { return stepper.executor().unavailable(id, position).empty(); };
  for (const ValueId id : computedValues(session))
    if (isFloating(stepper.graph().value(id).type.dtype) && intact(id, makerOf(stepper, id) + 1) &&
        !intact(id, stepper.count()))
      return id;
  return {};
}

std::string withoutHistogram(snapshot::TensorStatistics statistics) {
  statistics.clear_histogram();
  return statistics.SerializeAsString();
}

// What lies in memory right after each instruction of the begun step, which ends with it.
Statistics lookedAtByHand(Session& session) {
  Statistics found;
  const Stepper& stepper = session.stepper();
  for (int i = 0; i < stepper.count(); ++i) {
    EXPECT_TRUE(session.runTo(i + 1).has_value());
    for (const ValueId id : computedBy(stepper, stepper.plan().instructions[static_cast<std::size_t>(i)])) {
      const auto data = fetchValue(stepper, id, {}, {}, true, 0);
      if (data && data->has_statistics()) found.try_emplace(data->name(), data->statistics());
    }
  }
  return found;
}

std::map<std::string, snapshot::TensorData> watchedNow(const Session& session) {
  std::map<std::string, snapshot::TensorData> found;
  const snapshot::Position position = session.position();
  for (const auto& data : position.watched()) found[data.name()] = data;
  return found;
}

struct Place {
  TestModel model;
  std::string device;
};

class Watched : public ::testing::TestWithParam<Place> {};

TEST_P(Watched, HaveTheNumbersOfEveryStepAlthoughTheirMemoryIsGone) {
  const auto [model, device] = GetParam();
  auto watching = openSession(model, {{"device", device}}), byHand = openSession(model, {{"device", device}});
  auto plain = openSession(model, {{"device", device}});
  ASSERT_TRUE(watching && byHand && plain);
  const std::vector<ValueId> all = computedValues(*watching);
  ASSERT_FALSE(all.empty());
  watching->watch(all);
  int gone = 0;
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(byHand->beginStep().has_value());
    const Statistics expected = lookedAtByHand(*byHand);
    ASSERT_TRUE(byHand->finishStep().has_value());
    // At full speed, and as one whole step by hand.
    if (step == 1) ASSERT_TRUE(watching->beginStep().has_value());
    const auto record = watching->step();
    ASSERT_TRUE(record && plain->step());
    Statistics recorded;
    for (const auto& s : record->statistics())
      if (s.kind() == "watched") recorded[s.name()] = s.statistics();
    const auto now = watchedNow(*watching);
    EXPECT_EQ(now.size(), all.size());
    for (const auto& [name, statistics] : expected) {
      ASSERT_TRUE(now.contains(name)) << name;
      const snapshot::TensorData& data = now.at(name);
      EXPECT_EQ(data.step(), step) << name;
      EXPECT_EQ(data.statistics().SerializeAsString() == statistics.SerializeAsString(), true) << name;
      EXPECT_EQ(withoutHistogram(recorded[name]) == withoutHistogram(statistics), true) << name;
      gone += !data.unavailable().empty();
    }
  }
  EXPECT_GT(gone, 0) << "every value was still in memory: nothing was shown";
  EXPECT_EQ(stateBits(*watching) == stateBits(*plain), true) << "watching changed what is trained";
}

INSTANTIATE_TEST_SUITE_P(Devices, Watched,
                         ::testing::Values(Place{digits(), "cpu"}, Place{digits(), "mirror"},
                                           Place{digits(), "emulated:seed=3"}, Place{languageModel(), "cpu"}),
                         [](const auto& info) {
                           return info.param.model.name + "_" + info.param.device.substr(0, info.param.device.find(':'));
                         });

// At a place in a step the newest step that has computed a value may be the one before; back from there, too.
TEST(WatchedValues, FollowThePlaceInTheStepBothWays) {
  auto session = openSession(digits());
  ASSERT_TRUE(session);
  session->watch(computedValues(*session));
  ASSERT_TRUE(session->step().has_value());
  const auto before = watchedNow(*session);
  ASSERT_TRUE(session->beginStep().has_value());
  const Stepper& stepper = session->stepper();
  const int half = stepper.count() / 2;
  for (const int place : {half, 3, 0, half + 2, half - 1}) {
    ASSERT_TRUE(session->runTo(place).has_value());
    for (const auto& [name, data] : watchedNow(*session)) {
      const int maker = makerOf(stepper, ValueId{data.value()});
      EXPECT_EQ(data.step(), maker < place ? 1 : 0) << name << " at " << place;
      if (maker >= place)
        EXPECT_EQ(data.statistics().SerializeAsString() == before.at(name).statistics().SerializeAsString(), true) << name;
    }
  }
  ASSERT_TRUE(session->abandonStep().has_value());
  for (const auto& [name, data] : watchedNow(*session)) {
    EXPECT_EQ(data.step(), 0) << name;
    EXPECT_EQ(data.statistics().SerializeAsString() == before.at(name).statistics().SerializeAsString(), true) << name;
  }
}

TEST(WatchedValues, NothingOfAStepThatARewindTookBackIsLeft) {
  auto session = openSession(digits());
  ASSERT_TRUE(session);
  session->watch(computedValues(*session));
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(session->beginStep().has_value());
    ASSERT_TRUE(session->finishStep().has_value());
  }
  ASSERT_TRUE(session->rewind(2).has_value());
  for (const auto& [name, data] : watchedNow(*session)) EXPECT_FALSE(data.has_statistics()) << name << ": " << data.step();
  ASSERT_TRUE(session->step().has_value());
  for (const auto& [name, data] : watchedNow(*session)) EXPECT_EQ(data.step(), 2) << name;
}

// A record has no histogram, so a step that another follows counts none; of the last one, and of a walk, there are all.
TEST(WatchedValues, HistogramsAreCountedOfStepsThatAreLookedAt) {
  auto session = openSession(digits());
  ASSERT_TRUE(session);
  const ValueId first = firstThatGoes(*session);
  ASSERT_TRUE(first);
  session->watch({first});
  const auto bins = [&](bool last) {
    snapshot::StepRecord record;
    EXPECT_TRUE(session->step(record, !last).has_value());
    return session->position().watched(0).statistics().histogram_size();
  };
  EXPECT_GT(bins(true), 0);
  EXPECT_EQ(bins(false), 0);
  ASSERT_TRUE(session->beginStep().has_value());
  EXPECT_GT(bins(false), 0);
}

// What was edited counts, also when its memory is another value's.
TEST(WatchedValues, OfAnEditedValueAreThoseOfTheEdit) {
  auto session = openSession(digits());
  ASSERT_TRUE(session);
  Stepper& stepper = session->stepper();
  const ValueId first = firstThatGoes(*session);
  ASSERT_TRUE(first);
  const int maker = makerOf(stepper, first);
  session->watch({first});
  ASSERT_TRUE(session->beginStep() && session->runTo(maker + 1));
  const Status edited = editValue(stepper, first, {}, 0.25, true);
  ASSERT_TRUE(edited.has_value()) << edited.error().message;
  ASSERT_TRUE(session->finishStep().has_value());
  const auto now = session->position();
  ASSERT_EQ(now.watched_size(), 1);
  EXPECT_FALSE(now.watched(0).unavailable().empty());
  EXPECT_EQ(now.watched(0).step(), 0);
  EXPECT_EQ(now.watched(0).statistics().min(), 0.25);
  EXPECT_EQ(now.watched(0).statistics().max(), 0.25);
}

// Somebody who begins to watch in the middle of a step has the numbers of what is in memory, for good.
TEST(WatchedValues, WatchedLateAreThoseInMemory) {
  auto session = openSession(digits());
  ASSERT_TRUE(session);
  Stepper& stepper = session->stepper();
  const ValueId first = firstThatGoes(*session);
  ASSERT_TRUE(first);
  const int maker = makerOf(stepper, first);
  ASSERT_TRUE(session->beginStep() && session->runTo(maker + 1));
  session->watch({first});
  const std::string then = session->position().watched(0).statistics().SerializeAsString();
  ASSERT_TRUE(session->finishStep().has_value());
  const auto now = session->position();
  EXPECT_FALSE(now.watched(0).unavailable().empty());
  EXPECT_EQ(now.watched(0).step(), 0);
  EXPECT_EQ(now.watched(0).statistics().SerializeAsString() == then, true);
}

// Toggled in the middle of a step, the values are those of the new plan, by their keys.
TEST(WatchedValues, FollowTheirKeysIntoAnotherPlan) {
  auto toggled = openSession(languageModel()), plain = openSession(languageModel());
  ASSERT_TRUE(toggled && plain);
  toggled->watch(computedValues(*toggled));
  plain->watch(computedValues(*plain));
  ASSERT_TRUE(toggled->step() && plain->step());
  ASSERT_TRUE(toggled->beginStep() && toggled->runTo(toggled->stepper().count() / 2));
  TrainOptions options = toggled->options();
  ASSERT_TRUE(applySetting(options, "pass.fuse_gelu", "off", "test").has_value());
  ASSERT_TRUE(toggled->setOptions(options) && toggled->applyOptions());
  ASSERT_TRUE(toggled->finishStep() && plain->step());
  const auto a = watchedNow(*toggled), b = watchedNow(*plain);
  int compared = 0;
  for (const auto& [name, data] : a) {
    if (!b.contains(name) || data.step() != 1) continue;
    ++compared;
    const auto &x = data.statistics(), &y = b.at(name).statistics();
    EXPECT_EQ(x.count(), y.count()) << name;
    EXPECT_NEAR(x.norm(), y.norm(), 1e-4 * (1e-3 + y.norm())) << name;
  }
  EXPECT_GT(compared, static_cast<int>(b.size() / 2));
}

// A branch that was not taken has the numbers of the newest step that took it, or none.
TEST(WatchedValues, OfABranchThatWasNotTakenAreOfAnEarlierStep) {
  const auto models = testing::corpusCases({"branching"});
  if (models.empty()) GTEST_SKIP() << "no corpus lies next to the sources";
  auto session = openSession(models.front());
  ASSERT_TRUE(session);
  session->watch(computedValues(*session));
  int left = 0, taken = 0;
  std::map<std::string, std::int64_t> newest;
  for (std::int64_t step = 0; step < 6; ++step) {
    const auto record = session->step();
    ASSERT_TRUE(record.has_value());
    std::map<std::string, int> recorded;
    for (const auto& s : record->statistics())
      if (s.kind() == "watched") ++recorded[s.name()];
    for (const auto& [name, data] : watchedNow(*session)) {
      if (data.unavailable().find("branch of If did not run") != std::string::npos) {
        ++left;
        EXPECT_FALSE(recorded.contains(name)) << name;
        EXPECT_EQ(data.has_statistics() ? data.step() : -1, newest.contains(name) ? newest[name] : -1) << name;
      } else {
        ++taken;
        EXPECT_EQ(data.step(), step) << name;
        newest[name] = step;
      }
    }
  }
  EXPECT_GT(left, 0);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace stepscope
