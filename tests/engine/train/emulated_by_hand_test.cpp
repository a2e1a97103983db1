// What a person does to a step works on the emulated device as on the CPU: breaks, values, edits, watches, replay, rewind.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::openSession;
using testing::stateBits;

snapshot::Breakpoint enabled() {
  snapshot::Breakpoint breakpoint;
  breakpoint.set_enabled(true);
  return breakpoint;
}

TEST(EmulatedByHand, BreaksOnNodeOpPhaseAndPredicateBothWays) {
  auto session = openSession(digits(), {{"device", "emulated:seed=41"}});
  ASSERT_TRUE(session);
  snapshot::Breakpoint op = enabled();
  op.set_op("MaxPool");
  ASSERT_TRUE(session->setBreakpoints({op}).has_value());
  ASSERT_TRUE(session->beginStep().has_value());
  const auto first = session->runToBreak(false), second = session->runToBreak(false);
  ASSERT_TRUE(first && second);
  EXPECT_LT(first->instruction(), second->instruction());
  const auto back = session->runToBreak(true);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->instruction(), first->instruction());
  snapshot::Breakpoint phase = enabled();
  phase.set_phase(snapshot::BACKWARD);
  ASSERT_TRUE(session->setBreakpoints({phase}).has_value());
  const auto boundary = session->runToBreak(false);
  ASSERT_TRUE(boundary.has_value());
  EXPECT_EQ(boundary->instruction(), session->planSnapshot()->first_backward());
  ASSERT_TRUE(session->abandonStep().has_value());
  snapshot::Breakpoint predicate = enabled();
  predicate.set_predicate("loss value > 0");
  ASSERT_TRUE(session->setBreakpoints({predicate}).has_value());
  const auto stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_TRUE(stop->has_loss());
}

// An edit holds on the way back and forth again, a watched value is told, and the end of the step is that of the CPU with
// the same edit, within rounding.
TEST(EmulatedByHand, ValuesAreFetchedEditedAndWatched) {
  std::map<std::string, double> losses;
  for (const std::string device : {"cpu", "emulated:seed=42"}) {
    auto session = openSession(digits(), {{"device", device}});
    ASSERT_TRUE(session && session->beginStep());
    ValueId edited;
    for (const ParameterChoice& choice : session->plans().parameters())
      if (choice.trained && !edited) edited = choice.value;
    session->watch({edited});
    ASSERT_TRUE(editValue(session->stepper(), edited, {}, 0.03125, true).has_value());
    const auto told = session->position();
    ASSERT_EQ(told.watched_size(), 1) << device;
    EXPECT_EQ(told.watched(0).statistics().max(), 0.03125);
    const int count = session->stepper().count();
    ASSERT_TRUE(session->runTo(count / 2).has_value() && session->runTo(count / 4).has_value());
    const auto data = fetchValue(session->stepper(), edited, {}, {}, true, 1 << 20);
    ASSERT_TRUE(data.has_value()) << data.error().message;
    EXPECT_EQ(data->statistics().min(), 0.03125) << "the edit is replayed";
    const auto end = session->finishStep();
    ASSERT_TRUE(end.has_value()) << end.error().message;
    losses[device] = end->loss();
  }
  EXPECT_NEAR(losses["cpu"], losses["emulated:seed=42"], 2e-5 * losses["cpu"]);
}

TEST(EmulatedByHand, AReplayHasTheSameBitsAndARewindTheSameState) {
  auto session = openSession(digits(), {{"device", "emulated:seed=43"}});
  ASSERT_TRUE(session);
  const auto reply = session->compareBits();
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_GT(reply->values_size(), 0);
  EXPECT_TRUE(reply->equal());
  const std::string before = stateBits(*session);
  ASSERT_TRUE(session->step().has_value());
  const std::string after = stateBits(*session);
  ASSERT_TRUE(session->rewind(0).has_value());
  EXPECT_EQ(stateBits(*session) == before, true);
  ASSERT_TRUE(session->step().has_value());
  EXPECT_EQ(stateBits(*session) == after, true);
}

}  // namespace
}  // namespace stepscope
