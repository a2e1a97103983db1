// Where a run stops: nodes, ops, phases, NaN and predicates.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::languageModel;
using testing::openSession;
using testing::stateBits;

TEST(Session, BreaksOnNaNFromAPoisonedBatchAndNotOnTheMask) {
  auto session = openSession(languageModel());
  ASSERT_NE(session, nullptr);
  snapshot::Breakpoint nan, inf;
  nan.set_nan(true);
  nan.set_enabled(true);
  inf.set_new_inf(true);
  inf.set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({nan, inf}).has_value());
  auto stop = session->runToBreak(false);  // the causal mask holds −∞: no reason to stop
  ASSERT_TRUE(stop.has_value()) << stop.error().message;
  EXPECT_EQ(stop->stopped_by(), "end of step");
  ASSERT_TRUE(session->runTo(0).has_value());
  const ValueId weight = session->findValue("wte.weight");
  ASSERT_TRUE(weight.valid());
  ASSERT_TRUE(editValue(session->stepper(), weight, {}, std::numeric_limits<double>::quiet_NaN(), true).has_value());
  stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_NE(stop->stopped_by().find("NaN in"), std::string::npos) << stop->stopped_by();
  EXPECT_GT(stop->instruction(), 0);
  // One cause is one stop, however many values follow from it; back before it, it stops again.
  const int first = stop->instruction();
  stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->stopped_by(), "end of step");
  stop = session->runToBreak(true);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->instruction(), first) << stop->stopped_by();
  ASSERT_TRUE(session->stepInstructions(-1).has_value());
  stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->instruction(), first) << stop->stopped_by();
  ASSERT_TRUE(session->abandonStep().has_value());
  const auto record = session->step();  // the edit went with the step
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(std::isfinite(record->loss()));
}

// At full speed too, of however many parameters and whether or not the step is to stop at what it holds.
TEST(Session, EveryStepHasItsGradientNorm) {
  auto full = openSession(languageModel(), {{"break-on", "off"}}), walked = openSession(languageModel());
  ASSERT_TRUE(full && walked);
  for (int step = 0; step < 2; ++step) {
    const auto a = full->step();
    ASSERT_TRUE(a && a->has_gradient_norm());
    ASSERT_TRUE(walked->beginStep().has_value());
    ASSERT_TRUE(walked->runTo(walked->stepper().count()).has_value());
    if (step == 1) {  // back over the update, and forward again
      ASSERT_TRUE(walked->runTo(walked->stepper().plan().firstOptimizer - 3).has_value());
      ASSERT_TRUE(walked->stepPhase(false).has_value());
    }
    const auto b = walked->finishStep();
    ASSERT_TRUE(b.has_value()) << b.error().message;
    ASSERT_TRUE(b->has_gradient_norm()) << "step " << step;
    EXPECT_GT(b->gradient_norm(), 0);
    EXPECT_EQ(a->gradient_norm(), b->gradient_norm()) << "step " << step;
  }
}

TEST(Session, TellsOfAPredicateOnAValueThatIsNotThere) {
  std::vector<std::string> told;
  Observer observer;
  observer.alert = [&told](const snapshot::Alert& alert) {
    if (alert.code() == "breakpoint_without_value") told.push_back(alert.message());
  };
  auto session = openSession(digits(), {}, std::move(observer));
  ASSERT_NE(session, nullptr);
  snapshot::Breakpoint predicate;
  predicate.set_enabled(true);
  predicate.set_predicate("loss max > 10");
  ASSERT_TRUE(session->setBreakpoints({predicate}).has_value());
  EXPECT_TRUE(told.empty());
  predicate.set_predicate("los max > 10");
  ASSERT_TRUE(session->setBreakpoints({predicate}).has_value());
  EXPECT_EQ(told,
            std::vector<std::string>{"breakpoint 1: 'los max > 10' stops nowhere: the step that runs has no value 'los'"});
  told.clear();
  predicate.set_predicate("head.weight max > 10");
  ASSERT_TRUE(session->setBreakpoints({predicate}).has_value());
  EXPECT_TRUE(told.empty()) << told.front();
  predicate.set_predicate("image max > 10");
  ASSERT_TRUE(session->setBreakpoints({predicate}).has_value());
  EXPECT_EQ(told, std::vector<std::string>{"breakpoint 1: 'image max > 10' stops nowhere: no instruction of the step that "
                                           "runs writes 'image'"});
}

// What has the parameter's name is read; what the step makes of it is another value.
TEST(Session, BreaksWhereAParameterIsWritten) {
  for (const char* const micro : {"1", "2"}) {
    auto session = openSession(digits(), {{"optimizer", "adam"}, {"lr", "0.01"}, {"accumulate", micro}});
    ASSERT_NE(session, nullptr);
    const auto largest = [&](const char* name) {
      const auto view = session->stepper().value(session->findValue(name));
      double found = -std::numeric_limits<double>::infinity();
      for (std::int64_t i = 0; view && i < view->elements(); ++i) found = std::max(found, elementAsDouble(*view, i));
      return found;
    };
    ASSERT_TRUE(session->beginStep().has_value());
    const double before = largest("head.weight");
    snapshot::Breakpoint still, changed;
    still.set_id(1);
    still.set_enabled(true);
    still.set_predicate(fmt::format("head.weight max > {}", before + 1));
    changed.set_id(2);
    changed.set_enabled(true);
    changed.set_predicate(fmt::format("head.weight max != {}", before));
    ASSERT_TRUE(session->setBreakpoints({still, changed}).has_value());
    auto stop = session->runToBreak(false);
    ASSERT_TRUE(stop.has_value()) << stop.error().message;
    if (std::string_view(micro) == "2") {  // no update yet: what lies in the memory of the next contents does not count
      EXPECT_EQ(stop->stopped_by(), "end of step");
      ASSERT_TRUE(session->finishStep().has_value());
      stop = session->runToBreak(false);
      ASSERT_TRUE(stop.has_value()) << stop.error().message;
    }
    EXPECT_EQ(stop->breakpoint(), 2) << stop->stopped_by();
    EXPECT_TRUE(stop->stopped_by().starts_with("breakpoint 2: " + changed.predicate() + " (max is ")) << stop->stopped_by();
    EXPECT_GT(stop->instruction(), session->stepper().plan().firstOptimizer);
    EXPECT_NE(largest("head.weight.next"), before);
  }
}

TEST(Session, BreaksOnNodeOpPhaseAndPredicateBothWays) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  snapshot::Breakpoint op, phase, predicate;
  op.set_op("MaxPool");
  op.set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({op}).has_value());
  ASSERT_TRUE(session->beginStep().has_value());
  const auto first = session->runToBreak(false), second = session->runToBreak(false);
  ASSERT_TRUE(first && second);
  EXPECT_LT(first->instruction(), second->instruction());
  const auto back = session->runToBreak(true);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->instruction(), first->instruction());
  phase.set_phase(snapshot::BACKWARD);
  phase.set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({phase}).has_value());
  const auto boundary = session->runToBreak(false);
  ASSERT_TRUE(boundary.has_value());
  EXPECT_EQ(boundary->instruction(), session->planSnapshot()->first_backward());
  ASSERT_TRUE(session->abandonStep().has_value());
  predicate.set_predicate("loss value > 0");
  predicate.set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({predicate}).has_value());
  const auto stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_TRUE(stop->has_loss());
  predicate.set_predicate("loss bigger 3");
  EXPECT_FALSE(session->setBreakpoints({predicate}).has_value());
}

// The first stop of a run whose steps a person walks to their breakpoints.
snapshot::Position walkedTo(Session& session) {
  for (int step = 0; step < 8; ++step) {
    const auto stop = session.runToBreak(false);
    EXPECT_TRUE(stop.has_value());
    if (!stop || stop->breakpoint() != 0) return stop ? *stop : snapshot::Position();
    EXPECT_TRUE(session.finishStep().has_value());
  }
  return session.position();
}

// The same at full speed.
snapshot::Position ranTo(Session& session) {
  session.numbers().stopAtBreakpoints(true, true);
  for (int step = 0; step < 8; ++step)
    if (const auto ran = session.step(); !ran) {
      EXPECT_EQ(ran.error().code, ErrorCode::kCancelled) << ran.error().message;
      EXPECT_FALSE(session.numbers().stoppedBy().empty());
      break;
    }
  return session.position();
}

// In a step, in its update, where a number breaks too, and nowhere.
TEST(Session, FullSpeedStopsAtConditionsWhereAWalkDoes) {
  const std::map<std::string, std::string> settings = {{"optimizer", "adam"}, {"lr", "0.01"}};
  double least = std::numeric_limits<double>::infinity(), largest = 0;
  {
    auto plain = openSession(digits(), settings);
    ASSERT_NE(plain, nullptr);
    for (int step = 0; step < 6; ++step) {
      const auto record = plain->step();
      ASSERT_TRUE(record.has_value());
      least = std::min(least, record->loss());
      const auto view = plain->stepper().value(plain->findValue("head.weight"));
      ASSERT_TRUE(view.has_value());
      for (std::int64_t i = 0; i < view->elements(); ++i) largest = std::max(largest, elementAsDouble(*view, i));
    }
  }
  for (const std::string& predicate : {fmt::format("loss value <= {}", least), fmt::format("head.weight max >= {}", largest),
                                       fmt::format("loss value > {}", 1e9), std::string("logits nan == 0")}) {
    auto walked = openSession(digits(), settings), ran = openSession(digits(), settings);
    ASSERT_TRUE(walked && ran);
    snapshot::Breakpoint condition, nan, off;
    condition.set_predicate(predicate);
    condition.set_enabled(true);
    nan.set_nan(true);
    nan.set_enabled(true);
    off.set_instruction(5);
    for (Session* session : {walked.get(), ran.get()})
      ASSERT_TRUE(session->setBreakpoints({nan, off, condition}).has_value());
    const snapshot::Position a = walkedTo(*walked), b = ranTo(*ran);
    EXPECT_EQ(a.in_step(), b.in_step()) << predicate;
    EXPECT_EQ(a.in_step(), predicate != fmt::format("loss value > {}", 1e9));
    EXPECT_EQ(a.step(), b.step()) << predicate;
    EXPECT_EQ(a.instruction(), b.instruction()) << predicate;
    EXPECT_EQ(a.breakpoint(), b.breakpoint()) << predicate;
    if (a.in_step()) {
      EXPECT_EQ(a.stopped_by(), b.stopped_by());
      EXPECT_EQ(b.stopped_by(), ran->numbers().stoppedBy());
    }
    EXPECT_EQ(a.loss(), b.loss());
    EXPECT_EQ(stateBits(*walked) == stateBits(*ran), true) << predicate;
    if (a.in_step()) ASSERT_TRUE(walked->finishStep() && ran->finishStep());
    EXPECT_EQ(stateBits(*walked) == stateBits(*ran), true) << predicate;
  }
}

// A number that stops nobody is told although a condition stops the step that has it.
TEST(Session, AConditionStopsAStepWhoseNumberStopsNobody) {
  auto session = openSession(digits(), {{"lr", "1e30"}, {"optimizer", "sgd"}});
  ASSERT_NE(session, nullptr);
  snapshot::Breakpoint condition;
  condition.set_predicate("loss nan > 0");
  condition.set_enabled(true);
  ASSERT_TRUE(session->setBreakpoints({condition}).has_value());
  const snapshot::Position stop = ranTo(*session);
  ASSERT_TRUE(stop.in_step());
  EXPECT_TRUE(stop.stopped_by().starts_with("breakpoint 1: loss nan > 0")) << stop.stopped_by();
  ASSERT_TRUE(session->finishStep().has_value());
  EXPECT_TRUE(std::ranges::any_of(session->alerts(), [&](const auto& a) { return a.step() == stop.step(); }));
}

// A walk that a NaN stops tells of it once. After a rewind it is told again when the step runs again, and only then.
TEST(Session, AlertsOfStepsThatWereTakenBackAreForgotten) {
  std::vector<snapshot::Alert> told;
  Observer observer;
  observer.alert = [&told](const snapshot::Alert& alert) { told.push_back(alert); };
  auto session = openSession(digits(), {}, std::move(observer));
  ASSERT_NE(session, nullptr);
  snapshot::Breakpoint nan, nowhere;
  nan.set_nan(true);
  nan.set_enabled(true);
  nowhere.set_predicate("los max > 10");
  nowhere.set_enabled(true);
  const auto isNan = [](const snapshot::Alert& a) { return a.code() == "nan"; };
  const auto spoil = [&] {
    ASSERT_TRUE(session->beginStep().has_value());
    const ValueId image = session->findValue("image");
    ASSERT_TRUE(editValue(session->stepper(), image, {}, std::numeric_limits<double>::quiet_NaN(), true).has_value());
    const auto stop = session->runToBreak(false);
    ASSERT_TRUE(stop && stop->breakpoint() != 0);
    ASSERT_TRUE(session->finishStep().has_value());
  };
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(session->beginStep() && session->finishStep());
  ASSERT_TRUE(session->setBreakpoints({nan, nowhere}).has_value());
  spoil();
  ASSERT_EQ(std::ranges::count_if(told, isNan), 1);
  const auto others = session->alerts().size() - 1;
  EXPECT_GE(others, 1U);
  EXPECT_EQ(std::ranges::find_if(told, isNan)->step(), 2);
  ASSERT_TRUE(session->rewind(3).has_value());
  EXPECT_EQ(std::ranges::count_if(session->alerts(), isNan), 1);  // step 2 stands
  ASSERT_TRUE(session->rewind(1).has_value());
  EXPECT_EQ(std::ranges::count_if(session->alerts(), isNan), 0);
  EXPECT_EQ(session->alerts().size(), others);
  ASSERT_TRUE(session->step().has_value());
  EXPECT_EQ(std::ranges::count_if(told, isNan), 1);
  spoil();
  EXPECT_EQ(std::ranges::count_if(told, isNan), 2);
  EXPECT_EQ(std::ranges::count_if(session->alerts(), isNan), 1);
  EXPECT_EQ(session->alerts().size(), others + 1);
}

}  // namespace
}  // namespace stepscope
