// A session on real models: stepping both ways, equality of runs, plans against independent bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/build/pass_stages.h"
#include "engine/step/values.h"
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
    const auto view = session.stepper().value(ValueId{out.value()});
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

TEST_P(SessionOnModel, ValuesOfTheUpdateAreThereOnlyWhereItRan) {
  auto session = openSession(GetParam(), {{"accumulate", "2"}, {"clip-grad-norm", "1"}});
  ASSERT_NE(session, nullptr);
  const ValueId norm = session->findValue("stepscope.gradient_norm");
  ASSERT_TRUE(norm);
  const auto first = session->step();
  ASSERT_TRUE(first && !first->updated());
  const auto missing = session->stepper().value(norm);
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message.find("belongs to the update"), std::string::npos) << missing.error().message;
  const auto second = session->step();
  ASSERT_TRUE(second && second->updated());
  const auto there = session->stepper().value(norm);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_EQ(elementAsDouble(*there, 0), second->gradient_norm());
  // By hand too.
  ASSERT_TRUE(session->runTo(session->stepper().count()).has_value());
  EXPECT_FALSE(session->stepper().value(norm).has_value());
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
  auto shared = openSession(GetParam()),
       apart = openSession(GetParam(), {{"memory.inplace", "off"}, {"memory.reuse", "off"}});
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
      if (buffer.in_arena() && buffer.shares() < 0 && buffer.first() <= i && i <= buffer.last())
        live += (buffer.bytes() + 63) / 64 * 64;
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
      const bool overlap = roots[a]->offset() < roots[b]->offset() + roots[b]->bytes() &&
                           roots[b]->offset() < roots[a]->offset() + roots[a]->bytes();
      if (GetParam().name == "branching") continue;  // branches of one If share memory as alternatives
      EXPECT_FALSE(together && overlap) << roots[a]->name() << " and " << roots[b]->name();
    }
}

// Bytes of the arena that a value lies in at some time. The rest is scratch memory: a library asks for it by the processor
// and the number of threads, and need not touch all of it.
std::int64_t bytesOfValues(const snapshot::Plan& plan) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const auto& buffer : plan.buffers())
    if (buffer.in_arena() && buffer.shares() < 0 && buffer.value() >= 0)
      ranges.emplace_back(buffer.offset(), buffer.offset() + buffer.bytes());
  std::sort(ranges.begin(), ranges.end());
  std::int64_t covered = 0, end = 0;
  for (const auto& [from, to] : ranges) {
    covered += std::max<std::int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return covered;
}

TEST_P(SessionOnModel, PlannedPeakIsWhatIsTouched) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const auto record = session->step();
  ASSERT_TRUE(record.has_value());
  const auto plan = session->planSnapshot();
  if (plan->arena_bytes() < (1 << 20)) GTEST_SKIP() << "the arena is smaller than what pages can resolve to 2 %";
  EXPECT_LE(static_cast<double>(record->peak_bytes()), 1.02 * static_cast<double>(record->planned_bytes()));
  // Of the arena alone: pages of weights that are mapped from the file come and go as the system likes.
  EXPECT_GE(static_cast<double>(session->stepper().touchedBytes()), 0.98 * static_cast<double>(bytesOfValues(*plan)));
}

TEST_P(SessionOnModel, EveryStageVerifiesAndDiffersByItsEditsOnly) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  ASSERT_GE(session->plans().stages().size(), 8u);
  for (const Stage& stage : session->plans().stages())
    for (const std::string& problem : stage.graph->verify()) ADD_FAILURE() << stage.phase << ": " << problem;
  std::set<std::string> names;
  for (const auto& span : session->phases())
    if (span.depth() == 0) names.insert(span.name());
  for (const char* name : {"load", "check", "inline", "infer", "attach loss", "inspect inputs", "pre-grad passes",
                           "gradient", "post-grad passes", "optimizer", "specialise", "plan", "bind"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// The stops between two phases lead from the graph of one to that of the other.
TEST_P(SessionOnModel, EveryPassThatChangedTheGraphKeptIt) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const Stage* before = nullptr;
  std::size_t passes = 0;
  std::set<std::string> names;
  for (const Stage& stage : session->plans().stages()) {
    EXPECT_TRUE(names.insert(stage.phase).second) << stage.phase;
    if (isPassStage(stage)) {
      ++passes;
      ASSERT_NE(before, nullptr);
      EXPECT_NE(stage.graph->version(), before->graph->version()) << stage.phase;
    } else if (before && isPassStage(*before) && stage.phase == before->phase.substr(0, before->phase.find('/'))) {
      // The last pass of a phase leaves what the phase keeps.
      EXPECT_EQ(stage.graph->order().size(), before->graph->order().size()) << stage.phase;
    }
    before = &stage;
  }
  EXPECT_GT(passes, 0u);
  EXPECT_FALSE(isPassStage(session->plans().stages().back()));
  // Each belongs to a span of the build.
  const auto spans = session->phases();
  for (const std::string& name : names) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    const std::string pass = name.substr(slash + 1, name.find(" #") - slash - 1);
    EXPECT_TRUE(std::any_of(spans.begin(), spans.end(), [&](const auto& span) {
      return span.depth() > 0 && span.name() == pass &&
             spans.at(static_cast<std::size_t>(span.parent())).name() == name.substr(0, slash);
    })) << name;
  }
}

TEST_P(SessionOnModel, EveryNodeOfTheStepKnowsWhereItCameFrom) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  for (const NodeId id : session->runningGraph().order()) {
    const Node& node = session->runningGraph().node(id);
    EXPECT_FALSE(node.provenance.pass.empty()) << node.label();
    if (node.phase == Phase::kBackward && node.provenance.pass == "gradient")
      EXPECT_TRUE(node.provenance.forward.valid()) << node.label();
  }
}

// What can be read at the present place: availability and bits of every value of the plan.
std::map<std::string, std::string> readable(Session& session) {
  std::map<std::string, std::string> values;
  const auto plan = session.planSnapshot();
  for (const auto& buffer : plan->buffers()) {
    if (buffer.value() < 0) continue;
    const auto view = session.stepper().value(ValueId{buffer.value()});
    if (view && view->dtype != DType::kString)
      values[buffer.name()] = std::string(static_cast<const char*>(view->data), view->bytes());
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
    if (move == 5)
      place = count;  // the optimizer writes state in place
    else if (move % 3 == 1)
      place = std::max(1, place - 1 - static_cast<int>(random() % 40));
    else if (move == 8)
      place = std::max(1, place - 100);
    else
      place = std::min(count, place + 1 + static_cast<int>(random() % static_cast<unsigned>(std::max(2, count / 4))));
    ASSERT_TRUE(walker->runTo(place).has_value());
    edits.erase(edits.upper_bound(place), edits.end());
    const auto& last = plan->instructions(place - 1);
    if (move % 4 == 2 && last.outputs_size() > 0 && last.outputs(0).value() >= 0) {
      const ValueId value{last.outputs(0).value()};
      if (editValue(walker->stepper(), value, {}, 0.125 * move, true).has_value()) edits[place] = {value, 0.125 * move};
    }
    ASSERT_TRUE(straight->beginStep().has_value());
    for (const auto& [position, edit] : edits) {
      ASSERT_TRUE(straight->runTo(position).has_value());
      ASSERT_TRUE(editValue(straight->stepper(), edit.first, {}, edit.second, true).has_value());
    }
    ASSERT_TRUE(straight->runTo(place).has_value());
    EXPECT_EQ(readable(*walker) == readable(*straight), true) << "move " << move << " at instruction " << place;
  }
  ASSERT_TRUE(walker->finishStep() && straight->finishStep());
  EXPECT_EQ(stateBits(*walker) == stateBits(*straight), true);
}

INSTANTIATE_TEST_SUITE_P(Models, SessionOnModel, ::testing::ValuesIn(testModels()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Further, SessionOnModel, ::testing::ValuesIn(testing::furtherModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
