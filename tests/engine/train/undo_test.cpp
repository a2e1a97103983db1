// Stepping back: what is undone, what runs again, and edits in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::openSession;
using testing::stateBits;
using testing::TestModel;
using testing::testModels;

TEST(Session, EditsAreReplayedWhenSteppingBackOverThem) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(3).has_value());
  const auto plan = session->planSnapshot();
  const ValueId value{plan->instructions(2).outputs(0).value()};
  ASSERT_TRUE(editValue(session->stepper(), value, {}, 0.25, true).has_value());
  ASSERT_TRUE(session->runTo(12).has_value());
  ASSERT_TRUE(session->runTo(4).has_value());
  ASSERT_TRUE(session->runTo(3).has_value());
  const auto view = session->stepper().value(value);
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_FLOAT_EQ(static_cast<float>(elementAsDouble(*view, 0)), 0.25F);
}

// What an answer within 100 ms rests on, whatever the machine: nothing runs again as far as the undo log reaches.
TEST(Session, StepBackRunsNothingAgainWithinTheUndoLog) {
  for (const TestModel& model : testModels()) {
    if (model.name != "gpt2_lm" && model.name != "language_model") continue;
    auto session = openSession(model);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->beginStep().has_value());
    const int count = session->planSnapshot()->instructions_size();
    ASSERT_GT(count, UndoLog::kInstructions + 1);
    ASSERT_TRUE(session->runTo(count).has_value());
    for (int i = 0; i < UndoLog::kInstructions; ++i) ASSERT_TRUE(session->stepInstructions(-1).has_value());
    EXPECT_EQ(session->position().instruction(), count - UndoLog::kInstructions);
    EXPECT_EQ(session->replayedInstructions(), 0) << model.name;
    ASSERT_TRUE(session->stepInstructions(-1).has_value());  // beyond the log: one replay, which fills the log again
    const int replayed = count - UndoLog::kInstructions - 1;
    EXPECT_EQ(session->replayedInstructions(), replayed);
    ASSERT_TRUE(session->stepInstructions(-8).has_value());
    EXPECT_EQ(session->replayedInstructions(), replayed);
  }
}

TEST(Session, AnEditIsABarrierForTheUndoLog) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->runTo(6).has_value());
  ASSERT_TRUE(
      editValue(session->stepper(), ValueId{session->planSnapshot()->instructions(5).outputs(0).value()}, {}, 1, true)
          .has_value());
  ASSERT_TRUE(session->runTo(9).has_value());
  ASSERT_TRUE(session->runTo(6).has_value());
  EXPECT_EQ(session->replayedInstructions(), 0);
  ASSERT_TRUE(session->runTo(5).has_value());
  EXPECT_EQ(session->replayedInstructions(), 5);
}

TEST(Session, AnEditOfAnIntegerIsAWholeNumberThatItCanHold) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  const ValueId labels = session->findValue("label");
  ASSERT_TRUE(labels.valid());
  const auto before = session->stepper().value(labels);
  ASSERT_TRUE(before.has_value());
  ASSERT_EQ(before->dtype, DType::kI64);
  const double first = elementAsDouble(*before, 0);
  for (const double number :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.5, 1e19, -1e19}) {
    const auto refused = editValue(session->stepper(), labels, {0}, number, false);
    ASSERT_FALSE(refused.has_value()) << number;
    EXPECT_NE(refused.error().message.find("int64; expected a whole number"), std::string::npos) << refused.error().message;
    EXPECT_EQ(elementAsDouble(*session->stepper().value(labels), 0), first) << number;
  }
  EXPECT_TRUE(editValue(session->stepper(), labels, {0}, 9 - first, false).has_value());
  EXPECT_EQ(elementAsDouble(*session->stepper().value(labels), 0), 9 - first);
}

// A step that takes longer than a person waits without a word, whatever the machine.
std::unique_ptr<Session> openSlow(Observer observer) {
  return openSession(testing::languageModel(), {{"data", ""}, {"dim", "batch=512"}, {"ring.bytes", "0"}},
                     std::move(observer));
}

TEST(Session, AStepByHandTellsHowFarItIs) {
  std::vector<std::int64_t> told;
  std::int64_t of = 0;
  Observer observer;
  observer.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
    if (what != "instruction") return;
    told.push_back(done);
    of = total;
  };
  const auto session = openSlow(observer);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->finishStep().has_value());
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(of, session->stepper().count());
  EXPECT_GT(told.front(), 0);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), of);
}

// Cancelled, it is a step by hand again: what its update writes over from there is kept, and thrown away with it.
TEST(Session, AFinishThatIsCancelledCanStillBeThrownAway) {
  Session* cancels = nullptr;
  Observer observer;
  observer.progress = [&](const std::string&, std::int64_t, std::int64_t) {
    if (cancels) std::exchange(cancels, nullptr)->cancel();
  };
  const auto session = openSlow(observer);
  ASSERT_NE(session, nullptr);
  const std::string before = stateBits(*session);
  ASSERT_TRUE(session->beginStep().has_value());
  cancels = session.get();
  const auto cancelled = session->finishStep();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  const int count = session->stepper().count();
  ASSERT_LT(session->position().instruction(), session->stepper().plan().firstOptimizer);
  ASSERT_TRUE(session->runTo(count).has_value());
  EXPECT_NE(stateBits(*session), before);
  ASSERT_TRUE(session->abandonStep().has_value());
  EXPECT_EQ(stateBits(*session), before);
}

TEST(UndoLog, DropsTheOldestAboveItsBytesAndStopsAtWhatDoesNotFit) {
  UndoLog log(100);
  std::vector<std::byte> memory(60), large(200);
  const auto record = [&](int i, std::vector<std::byte>& m) {
    const std::span<std::byte> region(m);
    log.record(i, {&region, 1}, {});
    m[0] = static_cast<std::byte>(i + 1);
  };
  record(0, memory);
  log.record(1, {}, {});
  record(2, memory);  // 120 bytes: instruction 0 goes
  EXPECT_EQ(log.first(), 1);
  EXPECT_EQ(log.end(), 3);
  EXPECT_EQ(log.bytes(), 60);
  EXPECT_FALSE(log.reaches(0, 3));
  ASSERT_TRUE(log.reaches(2, 3));
  log.undoTo(2);
  EXPECT_EQ(memory[0], std::byte{1});
  record(2, large);
  EXPECT_FALSE(log.reaches(2, 3));
  EXPECT_EQ(log.bytes(), 0);
}

}  // namespace
}  // namespace stepscope
