// A session: what it refuses, what a change of its settings keeps, saving and resuming.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "engine/step/stepper.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::openSession;
using testing::stateBits;

// Nothing is copied when a micro step ends, and a step can be thrown away until its last part begins.
TEST(Session, AccumulatedGradientsAreWrittenOverAfterEverythingThatCanBeCancelled) {
  auto session = openSession(digits(), {{"accumulate", "2"}, {"clip-grad-norm", "1"}});
  ASSERT_NE(session, nullptr);
  const auto plan = session->planSnapshot();
  const auto writesState = [&](const snapshot::Instruction& instruction) {
    return std::any_of(instruction.outputs().begin(), instruction.outputs().end(), [&](const auto& out) {
      return std::any_of(plan->buffers().begin(), plan->buffers().end(), [&](const auto& buffer) {
        return buffer.value() >= 0 && buffer.value() == out.value() && buffer.decision().starts_with("written over");
      });
    });
  };
  int sums = 0;
  for (const auto& buffer : plan->buffers())
    if (buffer.name().ends_with(".accumulated_next")) {
      EXPECT_EQ(buffer.decision(), "written over '" + buffer.name().substr(0, buffer.name().size() - 5) + "'");
      ++sums;
    }
  EXPECT_GT(sums, 0);
  int first = 0;
  while (first < plan->instructions_size() && !writesState(plan->instructions(first))) ++first;
  ASSERT_EQ(first + sums, plan->first_optimizer());
  for (int i = first; i < plan->first_optimizer(); ++i)
    EXPECT_TRUE(writesState(plan->instructions(i))) << "instruction " << i;
  // A round: the second micro step adds to what the first one left, the third starts anew whatever the sums hold.
  const auto sumOf = [&] {
    for (const auto& [name, view] : session->trained().named(true))
      if (name.ends_with(".accumulated")) return elementAsDouble(view, 0);
    return 0.0;
  };
  auto once = openSession(digits(), {{"accumulate", "2"}, {"clip-grad-norm", "1"}});
  ASSERT_TRUE(session->step() && session->step() && once->step() && once->step());
  for (const auto& [name, view] : session->trained().named(true))
    if (name.ends_with(".accumulated"))
      for (std::int64_t i = 0; i < view.elements(); ++i) storeElement(view, i, NAN);
  ASSERT_TRUE(std::isnan(sumOf()));
  ASSERT_TRUE(session->step() && once->step());
  EXPECT_EQ(stateBits(*session) == stateBits(*once), true);
}

// The plan calls what an update reads a gradient, whether it updates one parameter or several.
TEST(Session, GroupedUpdatesReadWhatThePlanCallsGradients) {
  const auto gradients = [](const char* grouped) {
    std::set<std::string> names;
    auto session = openSession(digits(), {{"pass.group_updates", grouped}});
    if (!session) return names;
    for (const Buffer& buffer : session->stepper().plan().buffers)
      if (buffer.bufferClass == BufferClass::kGradient) names.insert(buffer.name);
    return names;
  };
  const auto grouped = gradients("on"), single = gradients("off");
  EXPECT_FALSE(single.empty());
  EXPECT_EQ(grouped, single);
}

// Nothing of an earlier step stays in a record whose memory is used again.
TEST(Session, ARecordThatIsUsedAgainHoldsTheLastStepOnly) {
  auto session = openSession(digits(), {{"record", "instructions"}}),
       other = openSession(digits(), {{"record", "instructions"}});
  ASSERT_TRUE(session && other);
  snapshot::StepRecord used;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(session->step(used));
    const auto fresh = other->step();
    ASSERT_TRUE(fresh);
    EXPECT_EQ(used.step(), i);
    EXPECT_EQ(used.loss(), fresh->loss());
    EXPECT_EQ(used.densities_size(), fresh->densities_size());
    ASSERT_EQ(used.spans_size(), fresh->spans_size());
    for (int s = 0; s < used.spans_size(); ++s) EXPECT_EQ(used.spans(s).instruction(), s);
  }
  TrainOptions off = session->options();
  off.record = "off";
  ASSERT_TRUE(session->setOptions(off));
  ASSERT_TRUE(session->step(used));
  EXPECT_EQ(used.spans_size(), 0);
}

TEST(Session, RewindsToAnEarlierStep) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  const auto first = session->finishStep();
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->finishStep().has_value());
  ASSERT_FALSE(session->ring().empty());
  ASSERT_TRUE(session->rewind(0).has_value());
  const auto again = session->step();
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->loss(), again->loss());
  EXPECT_FALSE(session->rewind(99).has_value());
}

// Once somebody steps by hand, steps at full speed are kept too: a run over many of them does not grow.
TEST(Session, KeepsAThousandStepsOfASmallModel) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  TrainOptions options = session->options();
  options.ringBytes = std::int64_t{8} << 30;
  options.threads = 1;
  ASSERT_TRUE(session->setOptions(options));
  ASSERT_TRUE(session->build());
  ASSERT_TRUE(session->beginStep());
  ASSERT_TRUE(session->finishStep());
  snapshot::StepRecord record;
  for (int i = 0; i < 1'010; ++i) ASSERT_TRUE(session->step(record));
  const std::vector<std::int64_t> kept = session->ring();
  ASSERT_EQ(kept.size(), 1'000u);
  EXPECT_EQ(kept.front(), 0);
  EXPECT_EQ(kept[1], 1'012 - 1'000 + 1);
  EXPECT_EQ(kept.back(), 1'011);
}

TEST(Session, AToggledOptionKeepsParametersAndAgrees) {
  auto session = openSession(digits()), reference = openSession(digits());
  ASSERT_TRUE(session && reference);
  ASSERT_TRUE(session->step().has_value());
  ASSERT_TRUE(reference->step().has_value());
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "pass.cse", "off", "test").has_value());
  ASSERT_TRUE(applySetting(options, "memory.inplace", "off", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  ASSERT_TRUE(session->build().has_value());
  const auto a = session->step(), b = reference->step();
  ASSERT_TRUE(a && b);
  EXPECT_NEAR(a->loss(), b->loss(), 1e-6 * std::abs(b->loss()));
}

TEST(Session, SavesAndResumesWithTheSameBits) {
  const auto file = std::filesystem::temp_directory_path() / "stepscope_session_test.safetensors";
  auto straight = openSession(digits());
  ASSERT_NE(straight, nullptr);
  ASSERT_TRUE(straight->step().has_value());
  ASSERT_TRUE(straight->step().has_value());
  ASSERT_TRUE(straight->trained().save(file).has_value());
  const auto expected = straight->step();
  auto resumed = openSession(digits());
  ASSERT_NE(resumed, nullptr);
  const Status loaded = resumed->trained().load(file, true);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(resumed->nextStep(), 2);
  const auto found = resumed->step();
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(expected->loss(), found->loss());
  std::filesystem::remove(file);
}

// A state that is not there is asked for again by the next build.
TEST(Session, BeginsWithAStateOnceItCanBeRead) {
  const auto file = std::filesystem::temp_directory_path() / "stepscope_start_state_test.safetensors";
  std::filesystem::remove(file);
  auto straight = openSession(digits());
  ASSERT_NE(straight, nullptr);
  ASSERT_TRUE(straight->step().has_value());
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "start-state", file.string(), "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  EXPECT_FALSE(session->build().has_value());
  ASSERT_TRUE(straight->trained().save(file).has_value());
  const Status built = session->build();
  ASSERT_TRUE(built.has_value()) << built.error().message;
  EXPECT_EQ(session->nextStep(), 1);
  std::filesystem::remove(file);
}

// What an earlier plan touched is not the peak of the one that runs.
TEST(Session, AnotherPlanIsMeasuredAnew) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  const auto roomy = session->step();
  ASSERT_TRUE(roomy.has_value());
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "memory.reuse", "off", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  const auto more = session->step();
  ASSERT_TRUE(more.has_value()) << more.error().message;
  ASSERT_GT(more->planned_bytes(), roomy->planned_bytes());
  EXPECT_GT(more->peak_bytes(), roomy->peak_bytes());
  ASSERT_TRUE(applySetting(options, "memory.reuse", "on", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  const auto again = session->step();
  ASSERT_TRUE(again.has_value());
  EXPECT_LT(again->peak_bytes(), more->peak_bytes());
}

TEST(Session, APassThatIsOffByDefaultRunsWhenAskedFor) {
  const auto runs = [](const std::unique_ptr<Session>& session) {
    return std::any_of(session->phases().begin(), session->phases().end(),
                       [](const snapshot::PhaseSpan& span) { return span.name() == "choose_winograd"; });
  };
  const auto plain = openSession(digits()), asked = openSession(digits(), {{"pass.choose_winograd", "on"}});
  ASSERT_TRUE(plain && asked);
  EXPECT_FALSE(runs(plain));
  EXPECT_TRUE(runs(asked));
}

TEST(Session, NamesTheInstructionsThatCancellingWaitsFor) {
  auto session = openSession(digits(), {{"long.ms", "0"}, {"record", "off"}}),
       quick = openSession(digits(), {{"long.ms", "1000000"}});
  ASSERT_TRUE(session && quick);
  ASSERT_TRUE(session->step() && session->step() && quick->step());
  const auto count = [](const Session& s) {
    return std::count_if(s.alerts().begin(), s.alerts().end(),
                         [](const snapshot::Alert& a) { return a.code() == "long_instruction"; });
  };
  EXPECT_EQ(count(*session), 1);  // once per variant
  EXPECT_EQ(count(*quick), 0);
  const auto& alert = *std::find_if(session->alerts().begin(), session->alerts().end(),
                                    [](const auto& a) { return a.code() == "long_instruction"; });
  EXPECT_NE(alert.message().find("cancelling waits"), std::string::npos) << alert.message();
  EXPECT_GE(alert.node(), 0);
}

TEST(Session, SaysWhatCannotBeDifferentiatedBeforeBuilding) {
  const Status wrong = [] {
    TrainOptions options;
    return applySetting(options, "optimizer", "sgdd", "test");
  }();
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("'sgdd'"), std::string::npos);
  auto session = Session::open(digits().model, {}, {});
  ASSERT_TRUE(session.has_value());
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "loss", "logits", "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  ASSERT_FALSE(built.has_value());
  EXPECT_NE(built.error().message.find("expected a float scalar"), std::string::npos) << built.error().message;
}

}  // namespace
}  // namespace stepscope
