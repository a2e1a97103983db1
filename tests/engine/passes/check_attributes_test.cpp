// Missing and unknown attributes are told in phase `check`, all at once, also of nodes that never reach the loss; what the
// file declares of its values and the graph contradicts is warned of.
#include "engine/passes/check_attributes.h"

#include <gtest/gtest.h>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

struct Outcome {
  std::string error, phase;  // empty: opened; the last phase
  std::vector<Problem> problems;
  std::vector<std::string> warnings;  // "code: message"
};

Outcome open(const onnx::ModelProto& model) {
  const TemporaryFolder folder;
  Outcome outcome;
  Observer observer;
  observer.phase = [&](const snapshot::PhaseSpan& span) {
    if (span.depth() == 0) outcome.phase = span.name();
  };
  observer.alert = [&](const snapshot::Alert& alert) { outcome.warnings.push_back(alert.code() + ": " + alert.message()); };
  const auto session =
      Session::open(folder.write("m.onnx", model.SerializeAsString()), {}, std::move(observer), &outcome.problems);
  if (!session) outcome.error = session.error().message;
  return outcome;
}

void addAttribute(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

TEST(CheckAttributes, MissingOnesOfAllNodesAreToldAtOnce) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  addNode(graph, "Cast", {"x"}, {"a"}, "typeless");
  addNode(graph, "Concat", {"x", "x"}, {"b"}, "nowhere");
  addNode(graph, "MaxPool", {"x"}, {"c"}, "boundless");
  const Outcome outcome = open(model);
  EXPECT_EQ(outcome.phase, "check");
  ASSERT_EQ(outcome.problems.size(), 3u) << outcome.error;
  EXPECT_EQ(outcome.problems[0].text(), "Cast 'typeless': attribute 'to' is missing; Cast needs it");
  EXPECT_EQ(outcome.problems[1].text(), "Concat 'nowhere': attribute 'axis' is missing; Concat needs it");
  EXPECT_EQ(outcome.problems[2].text(), "MaxPool 'boundless': attribute 'kernel_shape' is missing; MaxPool needs it");
}

TEST(CheckAttributes, UnknownOnesAreWarnedOfAndTheModelOpens) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  addAttribute(*addNode(graph, "Softmax", {"x"}, {"a"}, "soft"), "axes", 1);
  addAttribute(*addNode(graph, "Relu", {"x"}, {"b"}, "plain"), "alpha", 2);
  addAttribute(*addNode(graph, "Flatten", {"x"}, {"c"}, "good"), "axis", 1);
  const Outcome outcome = open(model);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.warnings,
            (std::vector<std::string>{
                "unknown_attribute: Softmax 'soft': attribute 'axes' is not one of Softmax, it has no effect; known: axis",
                "unknown_attribute: Relu 'plain': attribute 'alpha' is not one of Relu, it has no effect; known: none"}));
}

TEST(CheckAttributes, OpsetDecidesWhatIsRequired) {
  Graph graph;
  const ValueId x = graph.addValue("x", {}, ValueRole::kInput);
  graph.addNode("n", "", "Unsqueeze", {x}, {"y"});
  std::vector<AttributeFinding> findings;
  const auto noCall = [](const Node&) { return false; };
  checkAttributes(graph, 13, noCall, findings);
  EXPECT_TRUE(findings.empty());
  checkAttributes(graph, 12, noCall, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].message, "attribute 'axes' is missing; Unsqueeze needs it");
  EXPECT_TRUE(findings[0].missing);
}

TEST(CheckAttributes, CallsOfFunctionsAndOtherDomainsAreLeftAlone) {
  Graph graph;
  const ValueId x = graph.addValue("x", {}, ValueRole::kInput);
  graph.addNode("call", "", "Cast", {x}, {"y"}, {{"anything", std::int64_t{1}}});
  graph.addNode("other", "com.microsoft", "Cast", {x}, {"z"}, {{"anything", std::int64_t{1}}});
  graph.addNode("unknown", "", "Frobnicate", {x}, {"u"}, {{"anything", std::int64_t{1}}});
  std::vector<AttributeFinding> findings;
  checkAttributes(
      graph, 17, [](const Node& node) { return node.name == "call"; }, findings);
  EXPECT_TRUE(findings.empty()) << findings.front().message;
}

void declare(onnx::ModelProto& model, const std::string& name, std::vector<std::int64_t> dims) {
  auto& info = *model.mutable_graph()->add_value_info();
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(1);
  for (const std::int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

TEST(CheckDeclared, ContradictionsAreWarnedOfWithBothShapes) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  addNode(graph, "Relu", {"x"}, {"other"}, "r");
  declare(model, "other", {2, 4});
  const Outcome outcome = open(model);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.warnings,
            std::vector<std::string>{"check_declared: value 'other' of Relu 'r': the file declares float32[2, 4], the graph "
                                     "computes float32[2, 3]; the latter holds"});
}

TEST(CheckDeclared, AgreeingAndSymbolicShapesAreNoContradiction) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  addNode(graph, "Relu", {"x"}, {"same"}, "r");
  addNode(graph, "Neg", {"x"}, {"open"}, "n");
  declare(model, "same", {2, 3});
  declare(model, "open", {2});
  graph.mutable_value_info(1)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("width");
  const Outcome outcome = open(model);
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.warnings.empty()) << outcome.warnings.front();
}

}  // namespace
}  // namespace stepscope::testing
