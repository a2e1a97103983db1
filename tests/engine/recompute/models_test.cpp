// Recompute on real models: less memory, and not one bit changes.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "engine/step/stepper.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

std::string bitsOf(const TensorView& view) {
  std::string bits(view.bytes(), '\0');
  if (view.bytes() > 0) std::memcpy(bits.data(), view.data, view.bytes());
  return bits;
}

std::map<std::string, std::string> stateAfter(Session& session, int steps) {
  for (int i = 0; i < steps; ++i) EXPECT_TRUE(session.step().has_value());
  std::map<std::string, std::string> bits;
  for (const auto& [name, view] : session.trained().named(true)) bits[name] = bitsOf(view);
  return bits;
}

int repeatedNodes(const Session& session) {
  int count = 0;
  for (const NodeId id : session.runningGraph().order()) count += session.runningGraph().node(id).phase == Phase::kRecompute;
  return count;
}

class Recompute : public ::testing::TestWithParam<TestModel> {};

TEST_P(Recompute, ChangesNoBitOfParametersAndOptimizerState) {
  auto plain = openSession(GetParam());
  ASSERT_TRUE(plain);
  const auto expected = stateAfter(*plain, 2);
  for (const auto& [option, value] : {std::pair{"recompute.budget", "1"}, std::pair{"recompute.plan", "block:1:-1"}}) {
    auto session = openSession(GetParam(), {{option, value}});
    ASSERT_TRUE(session);
    const auto state = stateAfter(*session, 2);
    ASSERT_EQ(state.size(), expected.size());
    for (const auto& [name, bits] : expected)
      EXPECT_TRUE(state.at(name) == bits) << name << " with " << option << "=" << value;
  }
}

// A budget out of reach is met as nearly as possible: never with more memory than without one, and it is said.
TEST_P(Recompute, LowersTheMeasuredPlanTowardsABudget) {
  auto plain = openSession(GetParam()), session = openSession(GetParam(), {{"recompute.budget", "1"}});
  ASSERT_TRUE(plain && session);
  const auto before = plain->planSnapshot(), after = session->planSnapshot();
  // Workspaces, which the budget does not count, may hold the peak where it was.
  EXPECT_LE(after->lower_bound_bytes(), before->lower_bound_bytes());
  if (GetParam().name == "language_model") EXPECT_LT(after->lower_bound_bytes(), before->lower_bound_bytes() * 9 / 10);
  int told = 0;
  for (const snapshot::Alert& alert : session->alerts()) told += alert.code() == "recompute_budget";
  EXPECT_EQ(told, 1);
}

// Values that are computed again hold what the originals held: dropout masks too.
TEST_P(Recompute, ComputesTheSameBitsAgain) {
  auto session = openSession(GetParam(), {{"recompute.budget", "1"}});
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->beginStep().has_value());
  const ExecutionPlan& plan = session->stepper().executor().plan();
  const Graph& graph = session->runningGraph();
  std::map<std::int32_t, std::string> originals;
  int compared = 0;
  for (const Instruction& instruction : plan.instructions) {
    ASSERT_TRUE(session->stepInstructions(1).has_value());
    const Node& node = graph.node(instruction.node);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      const auto view = session->stepper().value(node.outputs[i]);
      if (!view) continue;
      if (node.phase == Phase::kForward) originals[node.outputs[i].index] = bitsOf(*view);
      if (node.phase != Phase::kRecompute) continue;
      const ValueId original = graph.node(node.provenance.forward).output(i);
      ASSERT_TRUE(originals.contains(original.index)) << node.name;
      EXPECT_TRUE(bitsOf(*view) == originals.at(original.index)) << node.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared > 0, repeatedNodes(*session) > 0);
}

TEST_P(Recompute, IsSteppedBackOver) {
  auto session = openSession(GetParam(), {{"recompute.budget", "1"}});
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->beginStep().has_value());
  const int count = static_cast<int>(session->stepper().executor().plan().instructions.size());
  ASSERT_TRUE(session->runTo(count).has_value());
  const auto there = session->position();
  ASSERT_TRUE(session->runTo(session->stepper().executor().plan().firstBackward).has_value());
  ASSERT_TRUE(session->runTo(count).has_value());
  EXPECT_EQ(session->position().loss(), there.loss());
  auto record = session->finishStep();
  ASSERT_TRUE(record.has_value());
  auto plain = openSession(GetParam());
  ASSERT_TRUE(plain);
  EXPECT_EQ(stateAfter(*session, 0), stateAfter(*plain, 1));
}

INSTANTIATE_TEST_SUITE_P(Models, Recompute, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
