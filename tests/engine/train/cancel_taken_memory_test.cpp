// A build that is cancelled, or fails, after the plan of before gave up its memory, or after another state was loaded for
// it: plan, state, options and the begun step are there again.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/step/values.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::stateBits;

// Two sessions that do the same, and one of them is cancelled where a phase or its part `at` begins.
class TakenMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    Observer observer;
    observer.begins = [this](const snapshot::PhaseSpan& span) {
      if (span.name() == at_) {
        ++seen_;
        session_->cancel();
      }
    };
    const std::map<std::string, std::string> settings{{"accumulate", "2"}, {"optimizer", "sgd"}, {"momentum", "0.5"}};
    session_ = testing::openSession(testing::testModels().at(1), settings, observer);
    other_ = testing::openSession(testing::testModels().at(1), settings);
    ASSERT_TRUE(session_ && other_);
    for (Session* s : {session_.get(), other_.get()}) {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(s->step().has_value());
      ASSERT_TRUE(s->beginStep().has_value());
      ASSERT_TRUE(s->runTo(kEdited).has_value());
      ASSERT_TRUE(editValue(s->stepper(), valueOf(kEdited - 1), {}, 0.25, true).has_value());
      ASSERT_TRUE(s->runTo(kPlace).has_value());
    }
  }

  ValueId valueOf(int instruction) const {
    return ValueId{session_->planSnapshot()->instructions(instruction).outputs(0).value()};
  }
  std::string bitsOf(const Session& session, int instruction) const {
    const auto view = session.stepper().value(valueOf(instruction));
    return view ? std::string(static_cast<const char*>(view->data), view->bytes()) : view.error().message;
  }
  void want(const std::vector<std::pair<const char*, std::string>>& settings) {
    TrainOptions options = session_->options();
    for (const auto& [name, value] : settings) ASSERT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
    ASSERT_TRUE(session_->setOptions(options).has_value());
  }
  // Builds with these settings; what was there is there again, and ends with the bits that it would have had.
  void buildInVain(const std::vector<std::pair<const char*, std::string>>& settings, bool cancelled = true) {
    const TrainOptions before = session_->options();
    const std::string plan = session_->planSnapshot()->SerializeAsString();
    const std::vector<std::int64_t> ring = session_->ring();
    want(settings);
    const Status built = session_->build();
    ASSERT_FALSE(built.has_value());
    EXPECT_EQ(built.error().code == ErrorCode::kCancelled, cancelled) << built.error().message;
    EXPECT_EQ(seen_, cancelled ? 1 : 0);
    at_.clear();
    ASSERT_TRUE(session_->built());
    EXPECT_EQ(session_->planSnapshot()->SerializeAsString(), plan);
    EXPECT_EQ(session_->nextStep(), 3);
    EXPECT_EQ(session_->ring(), ring);
    EXPECT_TRUE(session_->position().in_step());
    EXPECT_EQ(session_->position().instruction(), kPlace);
    EXPECT_EQ(session_->position().stopped_by(), other_->position().stopped_by());
    for (const int i : {kEdited - 1, kPlace - 1}) EXPECT_EQ(bitsOf(*session_, i), bitsOf(*other_, i)) << i;
    ASSERT_TRUE(session_->setOptions(before).has_value());
    if (cancelled) EXPECT_FALSE(session_->optionsWait()) << "options are those of the plan";
    ASSERT_TRUE(session_->finishStep() && other_->finishStep());
    EXPECT_EQ(stateBits(*session_), stateBits(*other_));
  }
  // Of a run that stands at step 5.
  std::string otherState() {
    const auto run = testing::openSession(testing::testModels().at(1),
                                          {{"accumulate", "2"}, {"optimizer", "sgd"}, {"momentum", "0.5"}, {"lr", "0.3"}});
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(run->step().has_value());
    const auto path = folder_.path() / "other.safetensors";
    EXPECT_TRUE(run->trained().save(path).has_value());
    return path.string();
  }

  static constexpr int kEdited = 4, kPlace = 9;
  testing::TemporaryFolder folder_;
  std::string at_;
  int seen_ = 0;
  std::unique_ptr<Session> session_, other_;
};

// "measure peak" begins when the new plan has its memory.
TEST_F(TakenMemory, IsGivenBack) {
  at_ = "measure peak";
  buildInVain({{"roofline", "on"}, {"optimizer", "adamw"}, {"momentum", "0"}});
}

TEST_F(TakenMemory, WithParametersOfAnotherTypeIsGivenBack) {
  at_ = "measure peak";
  buildInVain({{"roofline", "on"}, {"precision", "bf16"}, {"master-weights", "off"}});
}

TEST_F(TakenMemory, AStateThatWasLoadedForItIsPutBack) {
  at_ = "measure peak";
  buildInVain({{"roofline", "on"}, {"start-state", otherState()}});
}

TEST_F(TakenMemory, AStateThatWasLoadedIsPutBackBeforeMemoryIsTaken) {
  at_ = "gradient";
  buildInVain({{"start-state", otherState()}});
}

TEST_F(TakenMemory, ABuildThatFailsLeavesTheStateBefore) {
  buildInVain({{"start-state", otherState()}, {"memory.limit", "1000"}}, false);
}

// The same build, when nobody cancels it, begins with that state.
TEST_F(TakenMemory, TheSameBuildLoadsItAgain) {
  const std::string path = otherState();
  at_ = "gradient";
  want({{"start-state", path}});
  ASSERT_FALSE(session_->build().has_value());
  at_.clear();
  EXPECT_EQ(session_->nextStep(), 3);
  ASSERT_TRUE(session_->build().has_value());
  EXPECT_EQ(session_->nextStep(), 5);
  EXPECT_FALSE(session_->position().in_step());
}

// A first build has nothing to come back to: no tensor of the file stays for the next one.
TEST(CancelledFirstBuild, KeepsNothingOfItsStartState) {
  const testing::TemporaryFolder folder;
  const testing::TestModel model = testing::testModels().at(1);
  const auto path = folder.path() / "trained.safetensors";
  const auto trained = testing::openSession(model);
  ASSERT_TRUE(trained && trained->step() && trained->trained().save(path));
  std::string at = "gradient";
  std::function<void()> cancel;
  Observer observer;
  observer.begins = [&](const snapshot::PhaseSpan& span) {
    if (span.name() == at) cancel();
  };
  auto session = testing::openedSession(model, {{"start-state", path.string()}}, observer);
  ASSERT_TRUE(session.has_value());
  cancel = [&] { (*session)->cancel(); };
  ASSERT_FALSE((*session)->build().has_value());
  at.clear();
  EXPECT_EQ((*session)->nextStep(), 0);
  TrainOptions options = (*session)->options();
  ASSERT_TRUE(applySetting(options, "start-state", "", "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  ASSERT_TRUE((*session)->build().has_value());
  const auto fresh = testing::openSession(model);
  ASSERT_TRUE((*session)->step() && fresh->step());
  EXPECT_EQ(stateBits(**session), stateBits(*fresh));
}

}  // namespace
}  // namespace stepscope
