// Small parameters are updated together: which, with the same bits, and with every step of the window still possible.
#include "engine/passes/group_updates.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/step/stepper.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::openSession;
using testing::stateBits;
using Settings = std::map<std::string, std::string>;

std::map<std::string, int> operations(const Session& session) {
  std::map<std::string, int> found;
  const auto graph = session.plans().stages().back().graph;
  for (const NodeId id : graph->order())
    if (graph->node(id).phase == Phase::kOptimizer) ++found[graph->node(id).op];
  return found;
}

class GroupUpdates : public ::testing::TestWithParam<Settings> {};

TEST_P(GroupUpdates, LeavesTheSameBits) {
  for (const char* threads : {"1", "2"}) {
    Settings settings = GetParam();
    settings["threads"] = threads;
    auto together = openSession(digits(), settings);
    settings["pass.group_updates"] = "off";
    auto alone = openSession(digits(), settings);
    ASSERT_TRUE(together && alone);
    for (int step = 0; step < 4; ++step) {
      const auto a = together->step(), b = alone->step();
      ASSERT_TRUE(a && b);
      EXPECT_EQ(a->loss(), b->loss()) << "step " << step;
    }
    EXPECT_TRUE(stateBits(*together) == stateBits(*alone)) << threads << " threads";
    const auto grouped = operations(*together), single = operations(*alone);
    EXPECT_EQ(single.count("AdamUpdates") + single.count("SgdUpdates"), 0U);
    EXPECT_EQ(grouped.count("AdamUpdate") + grouped.count("SgdUpdate"), 0U);
    EXPECT_EQ(grouped.count("AdamUpdates") + grouped.count("SgdUpdates"), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, GroupUpdates,
    ::testing::Values(Settings{{"optimizer", "adamw"}},
                      Settings{{"optimizer", "adam"}, {"clip-grad-norm", "0.5"}, {"accumulate", "2"}},
                      Settings{{"optimizer", "sgd"}},
                      Settings{{"optimizer", "sgd"}, {"momentum", "0.9"}, {"nesterov", "on"}, {"clip-grad-norm", "1"}}));

TEST(GroupUpdates, ParametersOfAnotherGroupHaveAnUpdateOfTheirOwn) {
  auto session = openSession(digits(), {{"optimizer", "adamw"}, {"group", "bias:lr=0.01,weight_decay=0"}});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(operations(*session), (std::map<std::string, int>{{"AdamUpdates", 2}}));
  ASSERT_TRUE(session->step());
}

TEST(GroupUpdates, NormsOfATensorComeFirstInLamb) {
  auto session = openSession(digits(), {{"optimizer", "lamb"}});
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(operations(*session).contains("AdamUpdates"));
}

// Stepping into the middle of the optimizer and back leaves nothing behind.
TEST(GroupUpdates, IsSteppedOverAndBack) {
  auto session = openSession(digits(), {{"optimizer", "adamw"}});
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->step());
  const auto before = stateBits(*session);
  ASSERT_TRUE(session->beginStep());
  const int count = static_cast<int>(session->stepper().executor().plan().instructions.size());
  ASSERT_TRUE(session->runTo(count));
  EXPECT_FALSE(stateBits(*session) == before);
  ASSERT_TRUE(session->runTo(0));
  EXPECT_TRUE(stateBits(*session) == before);
}

// A graph with updates of given sizes, as the optimizer writes them.
struct Updates {
  Graph graph;
  std::vector<NodeId> nodes;

  explicit Updates(const std::vector<std::int64_t>& sizes) {
    const auto input = [&](const std::string& name, DType dtype, Shape shape) {
      const ValueId id = graph.addValue(name, {ValueKind::kTensor, dtype, std::move(shape)}, ValueRole::kInput);
      graph.mutableInputs().push_back(id);
      return id;
    };
    const ValueId rate = input("rate", DType::kF32, {}), update = input("update", DType::kI64, {});
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string name = "layer." + std::to_string(i);
      const Shape shape{sizes[i]};
      std::vector<ValueId> operands;
      for (const char* part : {".weight", ".gradient", ".exp_avg", ".exp_avg_sq"})
        operands.push_back(input(name + part, DType::kF32, shape));
      graph.mutableValue(operands[0]).role = ValueRole::kInitializer;
      operands.insert(operands.end(), {rate, update, ValueId{}});
      nodes.push_back(graph.addNode(name, "stepscope", "AdamUpdate", operands, {name + ".next", name + ".m", name + ".v"}));
      Node& node = graph.mutableNode(nodes.back());
      node.phase = Phase::kOptimizer;
      node.provenance.modulePath = InternedText(name);
      graph.stateUpdates.push_back({operands[0], node.output(0)});
    }
  }
};

TEST(GroupUpdates, WhatFillsTheThreadsStaysAloneAndSaysSo) {
  Updates updates({16, kGroupedElements + 1, 32, kGroupedElements});
  Inference inference(updates.graph, builtInOperators());
  ASSERT_TRUE(inference.run());
  updates.graph.setPass("group_updates");
  PassContext context(inference);
  ASSERT_TRUE(groupUpdates(updates.graph, context));
  const PassResult& result = context.result;
  EXPECT_EQ(result.matches, 1U);
  ASSERT_EQ(result.nearMisses.size(), 1U);
  EXPECT_EQ(result.nearMisses[0].node, updates.nodes[1]);
  EXPECT_EQ(result.nearMisses[0].condition, "262145 elements fill the threads alone; expected at most 262144");
  EXPECT_EQ(result.notes, std::vector<std::string>{"AdamUpdates of 3 parameters"});
  ASSERT_EQ(updates.graph.order().size(), 2U);
  EXPECT_TRUE(updates.graph.verify().empty()) << updates.graph.verify().front();
  const Node& together = updates.graph.node(updates.graph.order().back());
  EXPECT_EQ(together.op, "AdamUpdates");
  EXPECT_EQ(together.name, "small parameters");
  EXPECT_EQ(together.phase, Phase::kOptimizer);
  EXPECT_EQ(together.provenance.modulePath, "layer");
  EXPECT_EQ(together.provenance.sources, (std::vector{updates.nodes[0], updates.nodes[2], updates.nodes[3]}));
  ASSERT_TRUE(inference.inferNode(together.id));
  for (const StateUpdate& update : updates.graph.stateUpdates)
    EXPECT_EQ(updates.graph.value(update.next).type.shape, updates.graph.value(update.state).type.shape);
}

TEST(GroupUpdates, OneAloneIsLeftAsItIs) {
  Updates updates({16, kGroupedElements + 1});
  Inference inference(updates.graph, builtInOperators());
  ASSERT_TRUE(inference.run());
  const std::uint64_t version = updates.graph.version();
  PassContext context(inference);
  ASSERT_TRUE(groupUpdates(updates.graph, context));
  const PassResult& result = context.result;
  EXPECT_EQ(result.matches, 0U);
  EXPECT_EQ(result.nearMisses.size(), 2U);
  EXPECT_EQ(updates.graph.version(), version);
}

}  // namespace
}  // namespace stepscope
