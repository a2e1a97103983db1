// Nodes with too few, too many or absent operands: told in phase `check`, all at once, wherever they stand in the file.
#include "engine/passes/check_operands.h"

#include <gtest/gtest.h>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

struct Outcome {
  std::string error;  // empty: opened
  std::string phase;  // the last one
  std::vector<Problem> problems;
};

Outcome open(const onnx::ModelProto& model) {
  const TemporaryFolder folder;
  Outcome outcome;
  Observer observer;
  observer.phase = [&](const snapshot::PhaseSpan& span) { outcome.phase = span.name(); };
  const auto session =
      Session::open(folder.write("m.onnx", model.SerializeAsString()), {}, std::move(observer), &outcome.problems);
  if (!session) {
    EXPECT_EQ(session.error().code, ErrorCode::kInvalidArgument) << session.error().message;
    outcome.error = session.error().message;
  }
  return outcome;
}

TEST(CheckOperands, AllNodesAreToldInPhaseCheck) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  addNode(graph, "Add", {"x"}, {"a"}, "alone");
  addNode(graph, "Relu", {"x", "x"}, {"b"}, "crowd");
  addNode(graph, "Where", {"", "x", "x"}, {"c"}, "hole");
  addNode(graph, "Split", {"x"}, {}, "mute");
  addNode(graph, "Relu", {"x"}, {"d"}, "good");
  const Outcome outcome = open(model);
  EXPECT_EQ(outcome.phase, "check");
  ASSERT_EQ(outcome.problems.size(), 4u) << outcome.error;
  EXPECT_EQ(outcome.problems[0].text(), "Add 'alone': 1 input; expected 2");
  EXPECT_EQ(outcome.problems[1].text(), "Relu 'crowd': 2 inputs; expected 1");
  EXPECT_EQ(outcome.problems[2].text(), "Where 'hole': input 0 is absent; expected 3 inputs");
  EXPECT_EQ(outcome.problems[3].text(), "Split 'mute': 0 outputs; expected at least 1");
  EXPECT_TRUE(outcome.error.starts_with("Add 'alone': 1 input; expected 2")) << outcome.error;
}

TEST(CheckOperands, BranchesAndFunctionsAreLookedInto) {
  auto branching = branchingModel();
  for (auto& node : *branching.mutable_graph()->mutable_node())
    if (node.op_type() == "If") node.mutable_attribute(0)->mutable_g()->mutable_node(0)->clear_input();
  const Outcome branch = open(branching);
  EXPECT_EQ(branch.phase, "check");
  EXPECT_NE(branch.error.find("0 inputs; expected 1"), std::string::npos) << branch.error;

  auto functions = nestedFunctions(3);
  auto& last = *functions.mutable_functions(2)->mutable_node(0);
  last.add_input("a");
  const Outcome function = open(functions);
  EXPECT_EQ(function.phase, "check");
  EXPECT_NE(function.error.find("2 inputs; expected 1"), std::string::npos) << function.error;
}

TEST(CheckOperands, AFunctionMayTakeWhatAnOpOfItsNameDoesNot) {
  auto model = nestedFunctions(1);
  model.mutable_functions(0)->set_name("BiasGelu");
  model.mutable_functions(0)->set_domain("com.microsoft");
  model.mutable_opset_import(1)->set_domain("com.microsoft");
  auto& call = *model.mutable_graph()->mutable_node(0);
  call.set_op_type("BiasGelu");
  call.set_domain("com.microsoft");  // one input; the op takes two
  EXPECT_EQ(open(model).error, "");
}

TEST(CheckOperands, OlderFormsAreJudgedByTheirOwnOpset) {
  const auto problems = [](const char* op, int opset, int inputs) {
    Graph graph;
    const ValueId x = graph.addValue("x", {ValueKind::kTensor, DType::kF32, {}}, ValueRole::kInput);
    const std::vector<std::string> outputs =
        std::string(op) == "TopK" ? std::vector<std::string>{"v", "i"} : std::vector<std::string>{"y"};
    graph.addNode("n", "", op, std::vector<ValueId>(static_cast<std::size_t>(inputs), x), outputs);
    std::vector<OperandProblem> found;
    checkOperands(
        graph, opset, [](const Node&) { return false; }, found, builtInOperators().ops);
    return found.size();
  };
  EXPECT_EQ(problems("Slice", 9, 1), 0u);
  EXPECT_EQ(problems("Slice", 9, 3), 1u);
  EXPECT_EQ(problems("Slice", 10, 1), 1u);
  EXPECT_EQ(problems("Slice", 10, 3), 0u);
  EXPECT_EQ(problems("Gemm", 9, 2), 1u);
  EXPECT_EQ(problems("Gemm", 11, 2), 0u);
  EXPECT_EQ(problems("Resize", 10, 2), 0u);
  EXPECT_EQ(problems("Resize", 11, 2), 1u);
  EXPECT_EQ(problems("Resize", 13, 2), 0u);
  EXPECT_EQ(problems("ReduceMean", 17, 2), 1u);
  EXPECT_EQ(problems("ReduceMean", 18, 2), 0u);
  EXPECT_EQ(problems("TopK", 7, 1), 0u);
  EXPECT_EQ(problems("TopK", 11, 1), 1u);
  EXPECT_EQ(problems("Upsample", 7, 1), 0u);
  EXPECT_EQ(problems("Upsample", 9, 1), 1u);
  EXPECT_EQ(problems("Loop", 11, 1), 1u);
  EXPECT_EQ(problems("NobodyKnowsIt", 17, 0), 0u);
}

}  // namespace
}  // namespace stepscope::testing
