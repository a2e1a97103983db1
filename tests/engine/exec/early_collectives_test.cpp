// What the executor asks of who runs collectives.
#include <gtest/gtest.h>

#include <map>
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

}  // namespace
}  // namespace stepscope
