// A session on real models: stepping both ways, equality of runs, plans against independent bounds, breakpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TestModel;
using testing::testModels;

// Bits of every value that instruction i has just made.
std::string outputBits(Session& session, int i) {
  const auto plan = session.planSnapshot();
  std::string bits;
  for (const auto& out : plan->instructions(i).outputs()) {
    if (out.value() < 0) continue;
    const auto view = session.value(ValueId{out.value()});
    if (view && view->dtype != DType::kString) bits.append(static_cast<const char*>(view->data), view->bytes());
  }
  return bits;
}

class SessionOnModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(SessionOnModel, StepsToAnyInstructionAndBackWithTheSameBits) {
  auto session = openSession(GetParam(), {{"accumulate", "2"}, {"clip-grad-norm", "1"}});
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->step().has_value());  // the second micro step updates
  const std::string before = stateBits(*session);
  ASSERT_TRUE(session->beginStep().has_value());
  const int count = session->planSnapshot()->instructions_size();
  // Places spread over the step, the optimizer phase included.
  std::vector<int> places;
  const int stride = std::max(1, count / 24);
  for (int i = 1; i <= count; i += stride) places.push_back(i);
  places.push_back(count);
  std::vector<std::string> forward;
  for (const int place : places) {
    const auto position = session->runTo(place);
    ASSERT_TRUE(position.has_value()) << position.error().message;
    ASSERT_EQ(position->instruction(), place);
    forward.push_back(outputBits(*session, place - 1));
  }
  for (std::size_t k = places.size(); k-- > 0;) {
    const auto position = session->runTo(places[k]);
    ASSERT_TRUE(position.has_value()) << position.error().message;
    EXPECT_EQ(outputBits(*session, places[k] - 1) == forward[k], true) << "instruction " << places[k] - 1;
  }
  ASSERT_TRUE(session->abandonStep().has_value());
  EXPECT_EQ(stateBits(*session) == before, true) << "a step that was thrown away left traces";
}

TEST_P(SessionOnModel, SteppedAndFullSpeedRunsAreBitEqual) {
  auto fast = openSession(GetParam(), {{"record", "off"}}), stepped = openSession(GetParam(), {{"record", "instructions"}});
  ASSERT_TRUE(fast && stepped);
  for (int step = 0; step < 3; ++step) {
    const auto a = fast->step();
    ASSERT_TRUE(a.has_value()) << a.error().message;
    ASSERT_TRUE(stepped->beginStep().has_value());
    ASSERT_TRUE(stepped->stepInstructions(5).has_value());
    ASSERT_TRUE(stepped->stepInstructions(-2).has_value());
    ASSERT_TRUE(stepped->stepPhase(false).has_value());
    const auto b = stepped->finishStep();
    ASSERT_TRUE(b.has_value()) << b.error().message;
    const double x = a->loss(), y = b->loss();
    EXPECT_EQ(std::memcmp(&x, &y, sizeof x), 0) << "step " << step << ": " << x << " and " << y;
  }
  EXPECT_EQ(stateBits(*fast) == stateBits(*stepped), true);
}

TEST_P(SessionOnModel, RunTwiceComparesBitEqual) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const auto reply = session->compareBits();
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_GT(reply->values_size(), 0);
  EXPECT_TRUE(reply->equal());
}

TEST_P(SessionOnModel, InPlaceAndReuseChangeNoBit) {
  auto shared = openSession(GetParam()), apart = openSession(GetParam(), {{"memory.inplace", "off"}, {"memory.reuse", "off"}});
  ASSERT_TRUE(shared && apart);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(shared->step().has_value());
    ASSERT_TRUE(apart->step().has_value());
  }
  EXPECT_EQ(stateBits(*shared) == stateBits(*apart), true);
  EXPECT_LT(shared->planSnapshot()->arena_bytes(), apart->planSnapshot()->arena_bytes());
}

// The bound is computed here from lifetimes alone: the largest sum of bytes that are alive at one instruction.
TEST_P(SessionOnModel, ArenaIsWithinTenPercentOfTheLowerBound) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const auto plan = session->planSnapshot();
  ASSERT_TRUE(plan.has_value());
  std::int64_t bound = 0;
  for (int i = 0; i < plan->instructions_size(); ++i) {
    std::int64_t live = 0;
    for (const auto& buffer : plan->buffers())
      if (buffer.in_arena() && buffer.shares() < 0 && buffer.first() <= i && i <= buffer.last()) live += (buffer.bytes() + 63) / 64 * 64;
    bound = std::max(bound, live);
  }
  EXPECT_LE(static_cast<double>(plan->arena_bytes()), 1.10 * static_cast<double>(bound));
  EXPECT_GE(plan->arena_bytes(), bound * 9 / 10);
}

TEST_P(SessionOnModel, BuffersThatAreAliveTogetherDoNotOverlap) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const auto plan = session->planSnapshot();
  std::vector<const snapshot::Buffer*> roots;
  for (const auto& buffer : plan->buffers())
    if (buffer.in_arena() && buffer.shares() < 0 && buffer.first() >= 0 && buffer.bytes() > 0) roots.push_back(&buffer);
  for (std::size_t a = 0; a < roots.size(); ++a)
    for (std::size_t b = a + 1; b < roots.size(); ++b) {
      const bool together = roots[a]->first() <= roots[b]->last() && roots[b]->first() <= roots[a]->last();
      const bool overlap = roots[a]->offset() < roots[b]->offset() + roots[b]->bytes() && roots[b]->offset() < roots[a]->offset() + roots[a]->bytes();
      if (GetParam().name == "branching") continue;  // branches of one If share memory as alternatives
      EXPECT_FALSE(together && overlap) << roots[a]->name() << " and " << roots[b]->name();
    }
}

TEST_P(SessionOnModel, PlannedPeakIsWhatIsTouched) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const auto record = session->step();
  ASSERT_TRUE(record.has_value());
  if (session->planSnapshot()->arena_bytes() < (1 << 20)) GTEST_SKIP() << "the arena is smaller than what pages can resolve to 2 %";
  EXPECT_NEAR(static_cast<double>(record->peak_bytes()), static_cast<double>(record->planned_bytes()), 0.02 * static_cast<double>(record->planned_bytes()));
}

TEST_P(SessionOnModel, EveryStageVerifiesAndDiffersByItsEditsOnly) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  ASSERT_GE(session->stages().size(), 8u);
  for (const Stage& stage : session->stages())
    for (const std::string& problem : stage.graph->verify()) ADD_FAILURE() << stage.phase << ": " << problem;
  std::set<std::string> names;
  for (const auto& span : session->phases())
    if (span.depth() == 0) names.insert(span.name());
  for (const char* name : {"load", "check", "inline", "infer", "attach loss", "inspect inputs", "pre-grad passes", "gradient", "post-grad passes", "optimizer", "specialise", "plan", "bind"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST_P(SessionOnModel, EveryNodeOfTheStepKnowsWhereItCameFrom) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  for (const NodeId id : session->runningGraph().order()) {
    const Node& node = session->runningGraph().node(id);
    EXPECT_FALSE(node.provenance.pass.empty()) << node.label();
    if (node.phase == Phase::kBackward && node.provenance.pass == "gradient") EXPECT_TRUE(node.provenance.forward.valid()) << node.label();
  }
}

// What can be read at the present place: availability and bits of every value of the plan.
std::map<std::string, std::string> readable(Session& session) {
  std::map<std::string, std::string> values;
  const auto plan = session.planSnapshot();
  for (const auto& buffer : plan->buffers()) {
    if (buffer.value() < 0) continue;
    const auto view = session.value(ValueId{buffer.value()});
    if (view && view->dtype != DType::kString) values[buffer.name()] = std::string(static_cast<const char*>(view->data), view->bytes());
  }
  return values;
}

// A walk with edits, short ways back (undone) and long ones (replayed), beside a session that only ever goes forward.
TEST_P(SessionOnModel, UndoReplayAndEditsMixedLeaveTheBitsOfAStraightRun) {
  const std::map<std::string, std::string> settings{{"accumulate", "2"}, {"clip-grad-norm", "1"}};
  auto walker = openSession(GetParam(), settings), straight = openSession(GetParam(), settings);
  ASSERT_TRUE(walker && straight);
  ASSERT_TRUE(walker->step() && straight->step());  // the second micro step updates
  ASSERT_TRUE(walker->beginStep().has_value());
  const auto plan = walker->planSnapshot();
  const int count = plan->instructions_size();
  std::mt19937 random(7);
  std::map<int, std::pair<ValueId, double>> edits;  // by the instruction that comes next
  int place = 0;
  for (int move = 0; move < 9; ++move) {
    if (move == 5) place = count;  // the optimizer writes state in place
    else if (move % 3 == 1) place = std::max(1, place - 1 - static_cast<int>(random() % 40));
    else if (move == 8) place = std::max(1, place - 100);
    else place = std::min(count, place + 1 + static_cast<int>(random() % static_cast<unsigned>(std::max(2, count / 4))));
    ASSERT_TRUE(walker->runTo(place).has_value());
    edits.erase(edits.upper_bound(place), edits.end());
    const auto& last = plan->instructions(place - 1);
    if (move % 4 == 2 && last.outputs_size() > 0 && last.outputs(0).value() >= 0) {
      const ValueId value{last.outputs(0).value()};
      if (walker->edit(value, {}, 0.125 * move, true).has_value()) edits[place] = {value, 0.125 * move};
    }
    ASSERT_TRUE(straight->beginStep().has_value());
    for (const auto& [position, edit] : edits) {
      ASSERT_TRUE(straight->runTo(position).has_value());
      ASSERT_TRUE(straight->edit(edit.first, {}, edit.second, true).has_value());
    }
    ASSERT_TRUE(straight->runTo(place).has_value());
    EXPECT_EQ(readable(*walker) == readable(*straight), true) << "move " << move << " at instruction " << place;
  }
  ASSERT_TRUE(walker->finishStep() && straight->finishStep());
  EXPECT_EQ(stateBits(*walker) == stateBits(*straight), true);
}

INSTANTIATE_TEST_SUITE_P(Models, SessionOnModel, ::testing::ValuesIn(testModels()), [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Further, SessionOnModel, ::testing::ValuesIn(testing::furtherModels()), [](const auto& info) { return info.param.name; });

TestModel digits() { return testModels()[1]; }
TestModel languageModel() { return testModels()[0]; }

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
  ASSERT_TRUE(session->edit(weight, {}, std::numeric_limits<double>::quiet_NaN(), true).has_value());
  stop = session->runToBreak(false);
  ASSERT_TRUE(stop.has_value());
  EXPECT_NE(stop->stopped_by().find("NaN in"), std::string::npos) << stop->stopped_by();
  EXPECT_GT(stop->instruction(), 0);
  ASSERT_TRUE(session->abandonStep().has_value());
  const auto record = session->step();  // the edit went with the step
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(std::isfinite(record->loss()));
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
  EXPECT_EQ(told, std::vector<std::string>{"breakpoint 1: 'los max > 10' stops nowhere: the step that runs has no value 'los'"});
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

TEST(Session, EditsAreReplayedWhenSteppingBackOverThem) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(3).has_value());
  const auto plan = session->planSnapshot();
  const ValueId value{plan->instructions(2).outputs(0).value()};
  ASSERT_TRUE(session->edit(value, {}, 0.25, true).has_value());
  ASSERT_TRUE(session->runTo(12).has_value());
  ASSERT_TRUE(session->runTo(4).has_value());
  ASSERT_TRUE(session->runTo(3).has_value());
  const auto view = session->value(value);
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_FLOAT_EQ(static_cast<float>(elementAsDouble(*view, 0)), 0.25F);
}

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
  for (int i = first; i < plan->first_optimizer(); ++i) EXPECT_TRUE(writesState(plan->instructions(i))) << "instruction " << i;
  // A round: the second micro step adds to what the first one left, the third starts anew whatever the sums hold.
  const auto sumOf = [&] {
    for (const auto& [name, view] : session->namedState(true))
      if (name.ends_with(".accumulated")) return elementAsDouble(view, 0);
    return 0.0;
  };
  auto once = openSession(digits(), {{"accumulate", "2"}, {"clip-grad-norm", "1"}});
  ASSERT_TRUE(session->step() && session->step() && once->step() && once->step());
  for (const auto& [name, view] : session->namedState(true))
    if (name.ends_with(".accumulated"))
      for (std::int64_t i = 0; i < view.elements(); ++i) storeElement(view, i, NAN);
  ASSERT_TRUE(std::isnan(sumOf()));
  ASSERT_TRUE(session->step() && once->step());
  EXPECT_EQ(stateBits(*session) == stateBits(*once), true);
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
  ASSERT_TRUE(straight->saveState(file).has_value());
  const auto expected = straight->step();
  auto resumed = openSession(digits());
  ASSERT_NE(resumed, nullptr);
  const Status loaded = resumed->loadState(file, true);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(resumed->nextStep(), 2);
  const auto found = resumed->step();
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(expected->loss(), found->loss());
  std::filesystem::remove(file);
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

TEST(Session, AnEditOfAnIntegerIsAWholeNumberThatItCanHold) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  const ValueId labels = session->findValue("label");
  ASSERT_TRUE(labels.valid());
  const auto before = session->value(labels);
  ASSERT_TRUE(before.has_value());
  ASSERT_EQ(before->dtype, DType::kI64);
  const double first = elementAsDouble(*before, 0);
  for (const double number :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.5, 1e19, -1e19}) {
    const auto refused = session->edit(labels, {0}, number, false);
    ASSERT_FALSE(refused.has_value()) << number;
    EXPECT_NE(refused.error().message.find("int64; expected a whole number"), std::string::npos) << refused.error().message;
    EXPECT_EQ(elementAsDouble(*session->value(labels), 0), first) << number;
  }
  EXPECT_TRUE(session->edit(labels, {0}, 9 - first, false).has_value());
  EXPECT_EQ(elementAsDouble(*session->value(labels), 0), 9 - first);
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

TEST(Session, AnEditIsABarrierForTheUndoLog) {
  auto session = openSession(digits());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->runTo(6).has_value());
  ASSERT_TRUE(session->edit(ValueId{session->planSnapshot()->instructions(5).outputs(0).value()}, {}, 1, true).has_value());
  ASSERT_TRUE(session->runTo(9).has_value());
  ASSERT_TRUE(session->runTo(6).has_value());
  EXPECT_EQ(session->replayedInstructions(), 0);
  ASSERT_TRUE(session->runTo(5).has_value());
  EXPECT_EQ(session->replayedInstructions(), 5);
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

TEST(Session, APassThatIsOffByDefaultRunsWhenAskedFor) {
  const auto runs = [](const std::unique_ptr<Session>& session) {
    return std::any_of(session->phases().begin(), session->phases().end(), [](const snapshot::PhaseSpan& span) { return span.name() == "choose_winograd"; });
  };
  const auto plain = openSession(digits()), asked = openSession(digits(), {{"pass.choose_winograd", "on"}});
  ASSERT_TRUE(plain && asked);
  EXPECT_FALSE(runs(plain));
  EXPECT_TRUE(runs(asked));
}

TEST(Session, NamesTheInstructionsThatCancellingWaitsFor) {
  auto session = openSession(digits(), {{"long.ms", "0"}, {"record", "off"}}), quick = openSession(digits(), {{"long.ms", "1000000"}});
  ASSERT_TRUE(session && quick);
  ASSERT_TRUE(session->step() && session->step() && quick->step());
  const auto count = [](const Session& s) {
    return std::count_if(s.alerts().begin(), s.alerts().end(), [](const snapshot::Alert& a) { return a.code() == "long_instruction"; });
  };
  EXPECT_EQ(count(*session), 1);  // once per variant
  EXPECT_EQ(count(*quick), 0);
  const auto& alert = *std::find_if(session->alerts().begin(), session->alerts().end(), [](const auto& a) { return a.code() == "long_instruction"; });
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
