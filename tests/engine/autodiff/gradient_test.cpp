// Gradients of graphs that no exporter writes, but a person may: what is built, and that no error is lost.
#include "engine/autodiff/gradient.h"

#include <gtest/gtest.h>

namespace stepscope::testing {
namespace {

ValueId parameter(Graph& graph, std::string name, Shape shape) {
  return graph.addValue(std::move(name), {ValueKind::kTensor, DType::kF32, std::move(shape)}, ValueRole::kInitializer);
}

// d (p + p) / dp = 2: both contributions are the seed itself, a constant that no node made.
TEST(Gradient, OfAParameterThatIsAddedToItself) {
  Graph graph;
  const ValueId p = parameter(graph, "p", {});
  const NodeId sum = graph.addNode("sum", "", "Add", {p, p}, {"loss"});
  const ValueId loss = graph.node(sum).output(0);
  graph.mutableOutputs() = {loss};
  Inference inference(graph, {});
  ASSERT_TRUE(inference.run());
  const auto report = buildGradient(graph, inference, {loss, {p}, 1});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->gradients[0].valid());
  const Value& gradient = graph.value(report->gradients[0]);
  const Node& made = graph.node(gradient.producer);
  EXPECT_EQ(made.op, "Add");
  EXPECT_EQ(made.provenance.forward, sum);
  const Tensor* two = inference.constant(gradient.id);
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(elementAsDouble(two->view(), 0), 2);
  graph.mutableOutputs().push_back(gradient.id);
  EXPECT_TRUE(graph.verify().empty());
}

// The gradient leaves a branch through a Gate, whose condition is no bool: the step must not be built without it.
TEST(Gradient, ErrorOfTheGateOutOfABranchIsTold) {
  Graph graph;
  const ValueId condition = graph.addValue("condition", {ValueKind::kTensor, DType::kF32, Shape{}}, ValueRole::kInput);
  graph.mutableInputs() = {condition};
  const ValueId p = parameter(graph, "p", {2});
  const NodeId branch = graph.addNode("branch", "", "Relu", {p}, {"y"});
  graph.mutableNode(branch).predicates = {{condition, true}};
  const NodeId sum =
      graph.addNode("sum", "", "ReduceSum", {graph.node(branch).output(0)}, {"loss"}, {{"keepdims", std::int64_t{0}}});
  graph.mutableOutputs() = {graph.node(sum).output(0)};
  Inference inference(graph, {});
  ASSERT_TRUE(inference.run());
  const auto report = buildGradient(graph, inference, {graph.outputs()[0], {p}, 1});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("Gate"), std::string::npos) << report.error().message;
}

}  // namespace
}  // namespace stepscope::testing
