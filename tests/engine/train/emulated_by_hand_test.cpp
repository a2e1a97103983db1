// What a person does to a step works on the emulated device as on the CPU: breaks, values, edits, watches, replay, options
// that change in the middle of a step with their proof, recompute and the memory map.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
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

Status toggle(Session& session, const std::string& name, const std::string& value) {
  TrainOptions options = session.options();
  SS_TRY(applySetting(options, name, value, "test"));
  SS_TRY(session.setOptions(options));
  return session.applyOptions();
}

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
  for (const auto& model : {digits(), languageModel()}) {
    auto session = openSession(model, {{"device", "emulated:seed=43"}});
    ASSERT_TRUE(session);
    const auto reply = session->compareBits();
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    EXPECT_GT(reply->values_size(), 0);
    EXPECT_TRUE(reply->equal());
    const std::string before = stateBits(*session);
    ASSERT_TRUE(session->step().has_value());
    const std::string after = stateBits(*session);
    ASSERT_TRUE(session->rewind(0).has_value());
    EXPECT_EQ(stateBits(*session) == before, true) << model.name;
    ASSERT_TRUE(session->step().has_value());
    EXPECT_EQ(stateBits(*session) == after, true) << model.name;
  }
}

// Each pass off and on again in the middle of a step: the place stays, and the proof has compared values of both plans.
TEST(EmulatedByHand, OptionsChangeInThePausedStepWithAProof) {
  auto session = openSession(languageModel(), {{"device", "emulated:seed=44"}});
  ASSERT_TRUE(session && session->step() && session->beginStep());
  const int count = session->stepper().count();
  int toggled = 0;
  for (const char* option : {"pass.fuse_epilogue", "pass.cse", "pass.fuse_attention", "pass.fuse_pointwise"}) {
    const auto& table = optionTable();
    const auto info = std::ranges::find(table, std::string_view(option), &OptionInfo::name);
    if (info == table.end()) continue;
    ++toggled;
    SCOPED_TRACE(option);
    ASSERT_TRUE(session->runTo(count * 2 / 3).has_value());
    const snapshot::Position before = session->position();
    const Status there = toggle(*session, option, info->defaultValue == "on" ? "off" : "on");
    ASSERT_TRUE(there.has_value()) << there.error().message;
    ASSERT_NE(session->optionProof(), nullptr);
    EXPECT_GT(session->optionProof()->values(), 0);
    EXPECT_TRUE(session->position().in_step());
    ASSERT_TRUE(toggle(*session, option, std::string(info->defaultValue)).has_value());
    EXPECT_EQ(session->position().instruction(), before.instruction());
  }
  EXPECT_GE(toggled, 2);
  EXPECT_TRUE(session->finishStep().has_value());
}

// What is computed again has the bits that it had, and the arena is smaller for it.
TEST(EmulatedByHand, RecomputeSavesMemoryAndChangesNoBits) {
  const std::string device = "emulated:seed=45";
  auto whole = openSession(languageModel(), {{"device", device}}),
       budget = openSession(languageModel(), {{"device", device}, {"recompute.budget", "1"}});
  ASSERT_TRUE(whole && budget && whole->step() && budget->step());
  const auto plan = budget->planSnapshot();
  int repeated = 0;
  for (const auto& instruction : plan->instructions()) repeated += instruction.phase() == snapshot::RECOMPUTE ? 1 : 0;
  EXPECT_GT(repeated, 0);
  EXPECT_LT(plan->arena_bytes(), whole->planSnapshot()->arena_bytes());
  EXPECT_EQ(stateBits(*budget) == stateBits(*whole), true);
}

// The map of a device's memory: buffers that live at once lie apart, also across streams; a step needs what was planned.
TEST(EmulatedByHand, TheMemoryMapHoldsInEveryOrderOfStreams) {
  auto session = openSession(languageModel(), {{"device", "emulated:seed=46"}});
  ASSERT_TRUE(session);
  const auto step = session->step();
  ASSERT_TRUE(step.has_value());
  const auto plan = session->planSnapshot();
  EXPECT_GT(plan->arena_bytes(), 0);
  EXPECT_LE(plan->lower_bound_bytes(), plan->arena_bytes());
  std::set<int> streams;
  for (const auto& instruction : plan->instructions()) streams.insert(instruction.stream());
  EXPECT_GT(streams.size(), 1u);
  std::string bits = stateBits(*session);
  for (const char* device : {"emulated:seed=47", "emulated:seed=48,streams=eager", "emulated:seed=49"}) {
    auto other = openSession(languageModel(), {{"device", device}});
    auto apart = openSession(languageModel(), {{"device", device}, {"memory.reuse", "off"}});
    ASSERT_TRUE(other && apart && other->step() && apart->step());
    EXPECT_EQ(stateBits(*other) == bits, true) << device;
    EXPECT_EQ(stateBits(*apart) == bits, true) << device << ": memory that is used again holds what it should";
    EXPECT_GT(apart->planSnapshot()->arena_bytes(), plan->arena_bytes());
  }
}

}  // namespace
}  // namespace stepscope
