// What the executor asks of who runs collectives.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "tests/engine/plan/step_graph.h"

namespace stepscope {
namespace {

// Remembers what it was asked; nothing of it runs.
class Listening final : public CollectiveRunner {
 public:
  Status run(const Node&, const KernelCall&) override { return {}; }
  bool beside() const override {
    ++asked;
    return true;
  }
  void begin(const Node& node, const KernelCall&) override { begun.push_back(node.id); }

  mutable int asked = 0;
  std::vector<NodeId> begun;
};

// A step of `plan` at full speed, or with somebody who is told of every instruction.
Listening heardIn(const testing::StepGraph& step, ExecutionPlan plan, bool listened) {
  std::map<ValueId, Tensor> state;
  for (const ValueId id : step.trained) state[id] = Tensor(DType::kF32, *knownDims(*step.graph.value(id).type.shape));
  Executor executor(
      step.graph, std::move(plan), [&](ValueId id) { return state.at(id); }, Backend::kCpu, builtInOperators());
  const Status bound = executor.bind(true, 0);
  EXPECT_TRUE(bound.has_value()) << bound.error().message;
  Listening heard;
  Executor::RunOptions options;
  options.collectives = &heard;
  if (listened) options.after = [](int) { return Status(); };
  const auto ran = executor.run(0, static_cast<int>(executor.plan().instructions.size()), options);
  EXPECT_TRUE(ran.has_value()) << ran.error().message;
  return heard;
}

// Who says yes needs a thread for it (RankCollectives).
TEST(EarlyCollectives, NobodyIsAskedToRunThemBesideWhereThePlanHasNone) {
  const testing::StepGraph step(2, 8);
  for (const bool listened : {false, true}) EXPECT_EQ(heardIn(step, step.plan(), listened).asked, 0) << listened;
}

TEST(EarlyCollectives, BeginWhereThePlanSaysSo) {
  const testing::StepGraph step(2, 8);
  for (const bool listened : {false, true}) {
    ExecutionPlan plan = step.plan();
    plan.early = {{.instruction = 2, .begins = 1}};
    const NodeId second = plan.instructions[2].node;
    const Listening heard = heardIn(step, std::move(plan), listened);
    EXPECT_EQ(heard.asked, 1) << listened;
    EXPECT_EQ(heard.begun, std::vector{second}) << listened;
  }
}

// One that is ready just where it stands runs there, on the thread of the step: none behind it may have begun by then.
TEST(EarlyCollectives, NoneBeginsBeforeOneThatRunsAtItsPlace) {
  Graph graph;
  const auto node = [&](const char* domain, const char* op, ValueId input) {
    const NodeId id = graph.addNode("", domain, op, {input}, {std::string(op) + std::to_string(graph.nodeCapacity())});
    graph.mutableNode(id).sinceVersion = kInternalOpset;
    return graph.node(id).output(0);
  };
  const ValueId x = graph.addValue("x", {ValueKind::kTensor, DType::kF32, Shape{Dim(4)}}, ValueRole::kInput);
  graph.mutableInputs().push_back(x);
  const ValueId before = node("", "Exp", x), late = node("", "Sin", before);
  const std::string domain(kInternalDomain);
  const ValueId first = node(domain.c_str(), "AllReduce", late), second = node(domain.c_str(), "AllReduce", before);
  const ValueId end = node("", "Exp", before);
  graph.mutableOutputs() = {first, second, end};
  Inference inference(graph, builtInOperators());
  ASSERT_TRUE(inference.run().has_value());
  PlanOptions options;
  options.overlap = true;
  const auto plan = makePlan(graph, inference, options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  std::vector<int> places, early;
  for (int i = 0; i < static_cast<int>(plan->instructions.size()); ++i)
    if (graph.node(plan->instructions[static_cast<std::size_t>(i)].node).op == "AllReduce") places.push_back(i);
  ASSERT_EQ(places.size(), 2U);
  for (const EarlyCollective& collective : plan->early) {
    early.push_back(collective.instruction);
    for (const int place : places)
      if (place < collective.instruction && std::ranges::count(early, place) == 0)
        EXPECT_GT(collective.begins, place) << "instruction " << collective.instruction;
  }
}

}  // namespace
}  // namespace stepscope
