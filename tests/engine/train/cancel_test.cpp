// Cancelling: nothing half done is kept, nothing done is lost, and what was cancelled can go on.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::stateBits;

std::unique_ptr<Session> open() {
  return testing::openSession(testing::testModels().at(1), {{"clip-grad-norm", "1"}, {"accumulate", "2"}});
}

int instructions(const Session& session) { return session.planSnapshot()->instructions_size(); }

TEST(Cancel, AStepThatDidNotBeginToWriteStateNeverWas) {
  const auto session = open(), other = open();
  ASSERT_TRUE(session && other);
  session->cancel();
  const auto cancelled = session->step();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(session->nextStep(), 0);
  EXPECT_EQ(stateBits(*session), stateBits(*other));
  ASSERT_TRUE(session->step() && other->step());
  EXPECT_EQ(stateBits(*session), stateBits(*other));
}

// A step that ends soon is not left within: what memory holds stays that of the step before, and is.
TEST(Cancel, AStepThatWouldEndSoonIsNotBegun) {
  const auto session = open();
  ASSERT_TRUE(session);
  double last = 0;
  for (int i = 0; i < 3; ++i) last = session->step()->loss();
  session->cancel();
  const auto cancelled = session->step();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  const auto loss = session->stepper().value(session->stepper().step().loss);
  ASSERT_TRUE(loss.has_value()) << loss.error().message;
  EXPECT_EQ(elementAsDouble(*loss, 0), last);
}

// Its second batch has a label that is no class.
class WrongLater : public DataSource {
 public:
  std::int64_t entries() const override { return 0; }
  Result<Batch> batch(std::int64_t step) override {
    Tensor image(DType::kF32, {2, 1, 8, 8}), label(DType::kI64, {2});
    for (std::int64_t i = 0; i < image.elements(); ++i) storeElement(image.view(), i, 0.01 * static_cast<double>(i + step));
    storeElement(label.view(), 1, step == 0 ? 1 : 99);
    return Batch{{{"image", image}, {"label", label}}, "a test"};
  }
};

// What memory holds then is of no step that stands: it is not shown as that of the step before.
TEST(Cancel, AStepThatIsThrownAwayLeavesNoValues) {
  const auto session = open();
  ASSERT_TRUE(session);
  session->feedFrom(std::make_unique<WrongLater>());
  const auto first = session->step();
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const ValueId loss = session->stepper().step().loss;
  const auto of = session->stepper().value(loss);
  ASSERT_TRUE(of.has_value());
  EXPECT_EQ(elementAsDouble(*of, 0), first->loss());
  const auto failed = session->step();
  ASSERT_FALSE(failed.has_value());
  const auto gone = session->stepper().value(loss);
  ASSERT_FALSE(gone.has_value()) << "it is shown as that of step " << session->nextStep() - 1;
  EXPECT_NE(gone.error().message.find("are gone"), std::string::npos) << gone.error().message;
}

// What was built before is what is built: its plan, its graphs, and the next step is the one that would have come.
TEST(Cancel, ABuildLeavesWhatWasBuiltBefore) {
  const auto session = open(), other = open();
  ASSERT_TRUE(session && other);
  const std::string before = session->planSnapshot()->SerializeAsString();
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "accumulate", "1", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  session->cancel();
  const auto cancelled = session->build();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  ASSERT_TRUE(session->built());
  EXPECT_EQ(session->planSnapshot()->SerializeAsString(), before);
  EXPECT_EQ(session->graphSnapshot("")->nodes_size(), other->graphSnapshot("")->nodes_size());
  ASSERT_TRUE(session->build().has_value());
  EXPECT_NE(session->planSnapshot()->SerializeAsString(), before);
}

// So does the step that is begun: it ends with the bits that it would have had. With the settings of before nothing waits.
TEST(Cancel, ABuildLeavesTheStepThatIsBegun) {
  const auto session = open(), other = open();
  ASSERT_TRUE(session && other);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(5).has_value());
  const TrainOptions before = session->options();
  TrainOptions options = before;
  ASSERT_TRUE(applySetting(options, "accumulate", "1", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  session->cancel();
  const auto cancelled = session->build();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(session->position().in_step());
  EXPECT_EQ(session->position().instruction(), 5);
  EXPECT_TRUE(session->optionsWait()) << "what was asked for still is";
  ASSERT_TRUE(session->setOptions(before).has_value());
  EXPECT_FALSE(session->optionsWait());
  ASSERT_TRUE(session->finishStep() && other->step());
  ASSERT_TRUE(session->step() && other->step());  // it updates
  EXPECT_EQ(stateBits(*session), stateBits(*other));
}

// Nothing is built again for what was not taken.
TEST(Cancel, OptionsThatAreAppliedLeaveThePlanThatRuns) {
  std::vector<std::string> begun;
  std::string at;
  std::function<void()> cancel;
  Observer observer;
  observer.begins = [&](const snapshot::PhaseSpan& span) {
    begun.push_back(span.name());
    if (span.name() == at) cancel();
  };
  const auto session = testing::openSession(testing::testModels().at(1), {{"accumulate", "2"}}, observer);
  ASSERT_NE(session, nullptr);
  const std::string before = session->planSnapshot()->SerializeAsString();
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "accumulate", "1", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  begun.clear();
  at = "gradient";
  cancel = [&] { session->cancel(); };
  const auto cancelled = session->applyOptions();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(begun.back(), "gradient");
  EXPECT_EQ(session->planSnapshot()->SerializeAsString(), before);
  EXPECT_FALSE(session->optionsWait());
  EXPECT_EQ(session->options().accumulate, 2);
}

TEST(Cancel, OneThatCameTooLateIsTakenBack) {
  const auto session = open();
  ASSERT_NE(session, nullptr);
  session->cancel();
  session->clearCancel();
  EXPECT_TRUE(session->step().has_value());
}

// A step that ends early is not committed: the optimizer may stand in its middle.
TEST(Cancel, FinishingAStepStaysWhereItCameTo) {
  const auto session = open(), other = open();
  ASSERT_TRUE(session && other);
  for (const auto* s : {&session, &other}) ASSERT_TRUE((*s)->step().has_value());  // the next one updates
  ASSERT_TRUE(session->beginStep().has_value());
  const int place = instructions(*session) - 2;
  ASSERT_TRUE(session->runTo(place).has_value());
  session->cancel();
  const auto cancelled = session->finishStep();
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(session->position().in_step());
  EXPECT_EQ(session->position().instruction(), place);
  EXPECT_EQ(session->nextStep(), 1);
  ASSERT_TRUE(session->finishStep() && other->step());
  EXPECT_EQ(stateBits(*session), stateBits(*other));
}

TEST(Cancel, ASearchBackwardsEnds) {
  const auto session = open();
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(instructions(*session)).has_value());
  session->cancel();
  const auto stop = session->runToBreak(true);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->stopped_by(), "cancelled");
  EXPECT_EQ(stop->instruction(), 0);
}

TEST(Cancel, ALongWayBackEndsAndKeepsTheEditsAhead) {
  const auto session = open(), other = open();
  ASSERT_TRUE(session && other);
  ASSERT_TRUE(session->beginStep() && other->beginStep());
  const int count = instructions(*session), place = count / 3;
  const auto plan = session->planSnapshot();
  const ValueId value{plan->instructions(place - 1).outputs(0).value()};
  for (const auto* s : {&session, &other}) {
    ASSERT_TRUE((*s)->runTo(place).has_value());
    ASSERT_TRUE(editValue((*s)->stepper(), value, {}, 0.25, true).has_value());
    ASSERT_TRUE((*s)->runTo(count).has_value());
  }
  ASSERT_TRUE(editValue(session->stepper(), session->lossValue(), {}, 0, true)
                  .has_value());  // the undo log begins here, so the way back is a replay
  session->cancel();
  const auto stop = session->runTo(place + 1);
  ASSERT_TRUE(stop.has_value());
  ASSERT_EQ(stop->stopped_by(), "cancelled");
  ASSERT_LT(stop->instruction(), place);
  ASSERT_TRUE(session->finishStep() && other->finishStep());
  EXPECT_EQ(stateBits(*session), stateBits(*other));
}

// A run backwards looks for a break on the way that the user's edits made.
TEST(Cancel, ARunBackwardsKeepsTheEdits) {
  const auto session = open();
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(3).has_value());
  const ValueId value{session->planSnapshot()->instructions(2).outputs(0).value()};
  ASSERT_TRUE(editValue(session->stepper(), value, {}, 0.25, true).has_value());
  ASSERT_TRUE(session->runTo(4).has_value());
  snapshot::Breakpoint at;
  at.set_instruction(4);
  at.set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({at}).has_value());
  const auto after = [&] {
    const auto plan = session->planSnapshot();
    const auto view = session->stepper().value(ValueId{plan->instructions(3).outputs(0).value()});
    return view ? std::string(static_cast<const char*>(view->data), view->bytes()) : std::string();
  };
  const std::string edited = after();
  ASSERT_FALSE(edited.empty());
  ASSERT_TRUE(session->runTo(instructions(*session)).has_value());
  const auto stop = session->runToBreak(true);
  ASSERT_TRUE(stop.has_value()) << stop.error().message;
  EXPECT_EQ(stop->instruction(), 4);
  EXPECT_EQ(after(), edited);
}

TEST(Cancel, AtAnyMomentLeavesTheResultsAsTheyWere) {
  const auto session = open(), other = open();
  ASSERT_TRUE(session && other);
  constexpr int kSteps = 12;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) ASSERT_TRUE(other->step().has_value());
  const std::chrono::duration<double> stepTime = (std::chrono::steady_clock::now() - begin) / kSteps;
  // Pauses of up to two steps, so that some steps end; longer ones in time, should the machine have become slower.
  std::atomic<bool> over = false;
  std::thread disturber([&] {
    for (int i = 0; !over; ++i) {
      session->cancel();
      std::this_thread::sleep_for(stepTime * (1 + i % 17) / 8 * (1 + i / 100));
    }
  });
  int cancelled = 0;
  while (session->nextStep() < kSteps) {
    // Every other step is begun and finished like a person's, the rest run at full speed.
    if (session->nextStep() % 2 == 1 && !session->position().in_step()) {
      ASSERT_TRUE(session->beginStep().has_value());
      ASSERT_TRUE(session->stepInstructions(5).has_value());
    }
    const auto record = session->position().in_step() ? session->finishStep() : session->step();
    if (record) continue;
    ASSERT_EQ(record.error().code, ErrorCode::kCancelled) << record.error().message;
    ++cancelled;
  }
  over = true;
  disturber.join();
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(stateBits(*session), stateBits(*other));
}

}  // namespace
}  // namespace stepscope
