// Options that change in the middle of a paused step: place, values, breakpoints, watches, pins and edits stay.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::corpusCases;
using testing::digits;
using testing::languageModel;
using testing::openSession;
using testing::TestModel;

Status toggle(Session& session, const std::string& name, const std::string& value) {
  TrainOptions options = session.options();
  SS_TRY(applySetting(options, name, value, "test"));
  SS_TRY(session.setOptions(options));
  return session.applyOptions();
}

// Bytes of every computed value that is in memory now, by name.
std::map<std::string, std::string> valuesNow(const Session& session) {
  std::map<std::string, std::string> values;
  const Stepper& stepper = session.stepper();
  for (const Buffer& buffer : stepper.plan().buffers) {
    if (!buffer.value) continue;
    const auto view = stepper.value(buffer.value);
    if (view && view->dtype != DType::kString)
      values[buffer.name].assign(static_cast<const char*>(view->data), view->bytes());
  }
  return values;
}

class PausedOptions : public ::testing::TestWithParam<TestModel> {};

TEST_P(PausedOptions, EveryPassIsToggledAndBackWithEverythingWhereItWas) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->step().has_value());  // moments are no longer zero
  ASSERT_TRUE(session->beginStep().has_value());
  const ValueId loss = session->lossValue();
  ASSERT_TRUE(session->pin(loss, true).has_value());
  const int count = session->stepper().count();
  ASSERT_TRUE(session->runTo(count / 4).has_value());
  // A value that every plan computes: the first parameter that is trained, half of it.
  ValueId edited;
  for (const ParameterChoice& choice : session->plans().parameters())
    if (choice.trained && !edited) edited = choice.value;
  const std::string name = session->runningGraph().value(edited).name;
  ASSERT_TRUE(editValue(session->stepper(), edited, {}, 0.0625, true).has_value());
  const snapshot::Plan plan = *session->planSnapshot();
  snapshot::Breakpoint node, predicate;
  node.set_node(plan.instructions(count / 3).node());
  predicate.set_predicate("loss max > 1e30");
  for (auto* b : {&node, &predicate}) b->set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({node, predicate}).has_value());
  session->watch({edited});

  // Each pass at one of three places: in the forward phase, between, and in the optimizer.
  const int places[] = {count / 3, count * 2 / 3, count - 1};
  int turn = 0;
  for (const OptionInfo& info : optionTable()) {
    const std::string option(info.name);
    if (!option.starts_with("pass.")) continue;
    const int place = places[turn++ % 3];
    SCOPED_TRACE(option + " at " + std::to_string(place));
    ASSERT_TRUE(session->runTo(place).has_value());
    const snapshot::Position before = session->position();
    const auto values = valuesNow(*session);
    const Status there = toggle(*session, option, info.defaultValue == "on" ? "off" : "on");
    ASSERT_TRUE(there.has_value()) << there.error().message;
    EXPECT_FALSE(session->optionsWait());
    const snapshot::Position other = session->position();
    EXPECT_TRUE(other.in_step());
    EXPECT_EQ(other.step(), before.step());
    EXPECT_EQ(session->breakpoints().size(), 2u);
    ASSERT_EQ(other.watched_size(), 1);
    EXPECT_EQ(other.watched(0).name(), name);
    ASSERT_NE(session->optionProof(), nullptr);
    EXPECT_GT(session->optionProof()->values(), 0);

    const Status back = toggle(*session, option, std::string(info.defaultValue));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    const snapshot::Position after = session->position();
    EXPECT_EQ(after.instruction(), before.instruction());
    EXPECT_EQ(after.has_loss(), before.has_loss());
    EXPECT_EQ(session->breakpoints()[0].node(), node.node());
    ASSERT_EQ(after.watched_size(), 1);
    EXPECT_EQ(after.watched(0).SerializeAsString(), before.watched(0).SerializeAsString());
    EXPECT_TRUE(valuesNow(*session) == values);
  }
  // Backwards the edit is taken back with its place, and a breakpoint stops where it stood.
  ASSERT_TRUE(session->runTo(0).has_value());
  const auto stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->instruction(), count / 3);
  EXPECT_TRUE(session->finishStep().has_value());
}

std::vector<TestModel> models() {
  std::vector<TestModel> all{digits(), languageModel()};
  for (TestModel& model : corpusCases({"resnet", "bert_mlm", "gpt2_lm"})) all.push_back(std::move(model));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, PausedOptions, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

TEST(PausedOptions, OtherSettingsWaitForTheEndOfTheStep) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->runTo(7).has_value());
  ASSERT_TRUE(toggle(*session, "lr", "0.5").has_value());
  EXPECT_TRUE(session->optionsWait());
  EXPECT_EQ(session->position().instruction(), 7);
  const auto first = session->finishStep();
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(first->learning_rate(), 0.5);
  const auto second = session->step();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->learning_rate(), 0.5);
  EXPECT_FALSE(session->optionsWait());
}

TEST(PausedOptions, APlanThatCannotBeMadeLeavesTheStepWhereItStood) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->runTo(9).has_value());
  const auto values = valuesNow(*session);
  const Status refused = toggle(*session, "memory.limit", "1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_FALSE(session->optionsWait());
  EXPECT_EQ(session->position().instruction(), 9);
  EXPECT_TRUE(valuesNow(*session) == values);
  auto straight = openSession(digits());
  ASSERT_NE(straight, nullptr);
  const auto expected = straight->step(), found = session->finishStep();
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(found->loss(), expected->loss());
  EXPECT_EQ(testing::stateBits(*session) == testing::stateBits(*straight), true);
}

}  // namespace
}  // namespace stepscope
