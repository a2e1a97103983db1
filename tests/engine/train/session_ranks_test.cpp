// A rank that is walked through its step, back and forth, while the others run theirs: they never notice.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/engine/train/two_ranks.h"

namespace stepscope {
namespace {

using testing::firstOfTwo;

class SessionOfRanks : public ::testing::TestWithParam<const char*> {};  // what ranks keep parts of
INSTANTIATE_TEST_SUITE_P(Parts, SessionOfRanks, ::testing::Values("off", "optimizer", "gradients", "parameters"));

TEST_P(SessionOfRanks, AStepThatIsWalkedAndReplayedSendsNothingTwice) {
  std::int64_t plainCount = 0, walkedCount = 0;
  const auto plain = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.step());
        return {};
      },
      &plainCount, GetParam());
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  const auto walked = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.beginStep());
        const int count = session.stepper().count();
        for (const int place : {count - 1, 0, count / 2, count - 1, 1}) SS_TRY(session.runTo(place));
        SS_TRY(session.finishStep());
        return {};
      },
      &walkedCount, GetParam());
  ASSERT_TRUE(walked.has_value()) << walked.error().message;
  ASSERT_EQ(plain->size(), walked->size());
  for (const auto& [name, tensor] : *plain)
    EXPECT_EQ(std::memcmp(tensor.data(), walked->at(name).data(), tensor.bytes()), 0) << name;
  EXPECT_EQ(plainCount, walkedCount);
  EXPECT_GT(plainCount, 0);
}

TEST_P(SessionOfRanks, CollectivesBesideNodesBringTheSameBits) {
  std::map<std::string, std::size_t> early;
  const auto trained = [&](const char* beside) {
    return firstOfTwo(
        [&](Session& session) -> Status {
          SS_TRY(session.step());
          early[beside] = session.stepper().plan().early.size();
          return {};
        },
        nullptr, GetParam(), {{"ranks.overlap", beside}, {"ranks.prefetch", beside}});
  };
  const auto one = trained("off"), other = trained("on");
  ASSERT_TRUE(one.has_value()) << one.error().message;
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(early["off"], 0U);
  EXPECT_GT(early["on"], 1U);
  ASSERT_EQ(one->size(), other->size());
  for (const auto& [name, tensor] : *one)
    EXPECT_EQ(std::memcmp(tensor.data(), other->at(name).data(), tensor.bytes()), 0) << name;
}

// What the thread of a collective reads and writes, nobody writes or reads from its beginning to its place.
TEST_P(SessionOfRanks, NoInstructionTouchesTheMemoryOfACollectiveBesideIt) {
  std::vector<std::string> problems;
  std::size_t looked = 0;
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const auto judge = [&](const ExecutionPlan& plan) {
    const auto sameBytes = [&](int a, int b) {
      const std::size_t one = at(plan.root(a)), other = at(plan.root(b));
      const Buffer &x = plan.buffers[one], &y = plan.buffers[other];
      if (one == other) return true;
      return x.home == Home::kArena && y.home == Home::kArena && plan.offsets[one] < plan.offsets[other] + y.bytes &&
             plan.offsets[other] < plan.offsets[one] + x.bytes;
    };
    for (const EarlyCollective& early : plan.early)
      for (int i = early.begins; i < early.instruction; ++i) {
        const Instruction &collective = plan.instructions[at(early.instruction)], &beside = plan.instructions[at(i)];
        if (beside.view) continue;
        const auto look = [&](int ours, int theirs) {
          ++looked;
          if (ours >= 0 && theirs >= 0 && sameBytes(ours, theirs))
            problems.push_back(plan.buffers[at(ours)].name + " and " + plan.buffers[at(theirs)].name);
        };
        for (const int written : collective.outputs) {
          for (const int b : beside.inputs) look(written, b);
          for (const int b : beside.outputs) look(written, b);
          look(written, plan.workspaceOf(at(i)));
        }
        for (const int read : collective.inputs) {
          for (const int b : beside.outputs) look(read, b);
          look(read, plan.workspaceOf(at(i)));
        }
      }
  };
  const auto ran = firstOfTwo(
      [&](Session& session) -> Status {
        SS_TRY(session.step());
        judge(session.stepper().plan());
        return {};
      },
      nullptr, GetParam());
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_GT(looked, 0U);
  EXPECT_EQ(problems, std::vector<std::string>{});
}

TEST_P(SessionOfRanks, ATrialSendsNothing) {
  std::int64_t count = 0;
  const auto tried = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.compareBits());
        SS_TRY(session.step());
        return {};
      },
      &count, GetParam());
  ASSERT_TRUE(tried.has_value()) << tried.error().message;
  std::int64_t plain = 0;
  ASSERT_TRUE(firstOfTwo(
                  [](Session& session) -> Status {
                    SS_TRY(session.step());
                    return {};
                  },
                  &plain, GetParam())
                  .has_value());
  EXPECT_EQ(count, plain);
}

// Otherwise the parameter would be in memory from the forward to the backward phase.
TEST(SessionOfRanksWithRecompute, WhatRunsAgainReadsParametersThatAreGatheredAnew) {
  std::vector<std::string> kept;
  std::size_t anew = 0, gathered = 0;
  const auto ran = firstOfTwo(
      [&](Session& session) -> Status {
        SS_TRY(session.step());
        const ExecutionPlan& plan = session.stepper().plan();
        const Graph& graph = session.stepper().graph();
        std::set<ValueId> parts, whole;  // that the backward phase gathers, and what it makes of them
        for (const NodeId id : graph.order())
          if (const Node& node = graph.node(id); node.op == "AllGather" && node.phase == Phase::kBackward) {
            parts.insert(node.inputs.begin(), node.inputs.end());
            whole.insert(node.outputs.begin(), node.outputs.end());
          }
        for (const Instruction& instruction : plan.instructions) {
          const Node& node = graph.node(instruction.node);
          for (const ValueId input : node.inputs)
            anew += node.phase == Phase::kRecompute && node.provenance.pass == "recompute" && whole.contains(input) ? 1 : 0;
          if (node.op != "AllGather" || node.phase != Phase::kForward) continue;
          for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (!parts.contains(node.inputs[i])) continue;
            ++gathered;
            const Buffer& buffer = plan.buffers[static_cast<std::size_t>(instruction.outputs[i])];
            if (buffer.last >= plan.firstBackward) kept.push_back(buffer.name);
          }
        }
        return {};
      },
      nullptr, "parameters", {{"recompute.budget", "1"}, {"ranks.bucket", "1000000"}});
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_GT(anew, 0U);
  EXPECT_GT(gathered, 0U);
  EXPECT_EQ(kept, std::vector<std::string>{});
  const auto plain = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.step());
        return {};
      },
      nullptr, "parameters");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  for (const auto& [name, tensor] : *plain)
    EXPECT_EQ(std::memcmp(tensor.data(), ran->at(name).data(), tensor.bytes()), 0) << name;
}

}  // namespace
}  // namespace stepscope
