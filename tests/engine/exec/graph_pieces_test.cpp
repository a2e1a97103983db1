// Which parts of a plan can be recorded as graphs: all of it between the host's parts, and nothing that the host takes part
// in.
#include "engine/exec/graph_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/plan/step_graph.h"

namespace stepscope {
namespace {

using testing::StepGraph;

ExecutionPlan planOn(const StepGraph& step, const char* device, int streams) {
  PlanOptions options;
  options.device = *findDevice(device);
  options.streams = streams;
  ExecutionPlan plan = step.plan(options);
  packArena(plan, step.graph, true);
  return plan;
}

// What holds for pieces of any plan.
void expectSound(const ExecutionPlan& plan, const std::vector<GraphPiece>& pieces) {
  int at = 0;
  for (const GraphPiece& piece : pieces) {
    EXPECT_EQ(piece.begin, at);
    EXPECT_GT(piece.end, piece.begin);
    EXPECT_EQ(piece.recordable, piece.reason.empty());
    at = piece.end;
    for (int i = piece.begin; i < piece.end; ++i) {
      const Instruction& one = plan.instructions[static_cast<std::size_t>(i)];
      if (!piece.recordable || one.view) continue;
      EXPECT_FALSE(one.onHost);
      EXPECT_EQ(one.updateEntry, plan.instructions[static_cast<std::size_t>(piece.first)].updateEntry);
      for (const Wait& wait : one.waits) EXPECT_TRUE(!wait.host || i == piece.first);
    }
    for (const int event : piece.eventsOut) EXPECT_TRUE(event >= piece.begin && event < piece.end);
  }
  EXPECT_EQ(at, static_cast<int>(plan.instructions.size()));
}

int recordableOf(const std::vector<GraphPiece>& pieces) {
  return static_cast<int>(std::ranges::count_if(pieces, [](const GraphPiece& piece) { return piece.recordable; }));
}

TEST(GraphPieces, OfAStepAreItsGradientsAndItsUpdate) {
  const StepGraph step(8, 24);
  for (const int streams : {1, 2, 3}) {
    const ExecutionPlan plan = planOn(step, "mirror", streams);
    const auto pieces = graphPieces(plan);
    expectSound(plan, pieces);
    EXPECT_EQ(recordableOf(pieces), 2) << streams;
    EXPECT_TRUE(std::ranges::any_of(pieces, [&](const GraphPiece& piece) { return piece.begin == plan.firstOptimizer; }));
  }
}

TEST(GraphPieces, EndWhereTheHostTakesPart) {
  const StepGraph step(4, 24);
  const ExecutionPlan plan = planOn(step, "mirror:Relu", 2);
  const auto pieces = graphPieces(plan);
  expectSound(plan, pieces);
  EXPECT_TRUE(
      std::ranges::any_of(pieces, [](const GraphPiece& piece) { return piece.reason == "instructions of the CPU"; }));
  EXPECT_TRUE(
      std::ranges::any_of(pieces, [](const GraphPiece& piece) { return piece.reason == "copies between host and device"; }));
}

// What waits across the border of a piece is known by its event.
TEST(GraphPieces, NameTheEventsThatLeaveThem) {
  const StepGraph step(8, 24);
  const ExecutionPlan plan = planOn(step, "mirror", 3);
  const auto pieces = graphPieces(plan);
  int leaving = 0;
  for (const GraphPiece& piece : pieces) leaving += static_cast<int>(piece.eventsOut.size());
  int expected = 0;
  std::vector<bool> seen(plan.instructions.size(), false);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i)
    for (const Wait& wait : plan.instructions[i].waits) {
      const auto of = [&](int instruction) {
        return std::ranges::find_if(pieces, [&](const GraphPiece& p) { return instruction < p.end; });
      };
      if (of(wait.instruction) == of(static_cast<int>(i)) || seen[static_cast<std::size_t>(wait.instruction)]) continue;
      seen[static_cast<std::size_t>(wait.instruction)] = true;
      ++expected;
    }
  EXPECT_GT(expected, 0);
  EXPECT_EQ(leaving, expected);
}

}  // namespace
}  // namespace stepscope
