// Gradients of graphs that no exporter writes, but a person may: what is built, and that no error is lost.
#include "engine/autodiff/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/ops/stop_inputs.h"
#include "tests/engine/autodiff/slopes.h"

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
  Inference inference(graph, builtInOperators());
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
  Inference inference(graph, builtInOperators());
  ASSERT_TRUE(inference.run());
  const auto report = buildGradient(graph, inference, {graph.outputs()[0], {p}, 1});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("Gate"), std::string::npos) << report.error().message;
}

// The boxes are computed from a trained value, and RoiAlign has no gradient for its boxes.
TEST(Gradient, AnAlertNamesTheTrainedValueBehindAnEdgeThatPassesNone) {
  const std::string graph = floats("x", {1, 1, 4, 4}, std::vector<float>(16, 1.0f)) + floats("w", {1, 4}, {0, 0, 1, 1}) +
                            floats("two", {1, 4}, {2, 2, 2, 2}) + ints("image", {1}, {0}) + node("Mul", "w two", "boxes") +
                            node("RoiAlign", "x boxes image", "cropped") +
                            node("ReduceSum", "cropped", "a", attribute("keepdims", 0)) +
                            node("ReduceSum", "w", "b", attribute("keepdims", 0)) + node("Add", "a b", "loss");
  const auto step = smallStep(graph, 17, {"w"}, {1, {{"train", "^w$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("w"), (std::vector<double>{1, 1, 1, 1}));
  ASSERT_EQ(step->warnings.size(), 1u);
  EXPECT_EQ(
      step->warnings[0],
      "RoiAlign 'RoiAlign_cropped': no gradient goes through input 1 'boxes' (positions of the boxes; torchvision has no "
      "gradient for them); trained 'w' leads there and misses that part of its gradient");
  const auto frozen = smallStep(graph, 17, {"x"}, {1, {{"train", "^x$"}}, {}});
  ASSERT_TRUE(frozen.has_value()) << frozen.error().message;
  EXPECT_TRUE(frozen->warnings.empty()) << frozen->warnings[0];
}

// What PyTorch's exporter writes for scaled_dot_product_attention and for _safe_softmax: the second row is masked
// altogether.
TEST(Gradient, OfASoftmaxWhoseRowIsMaskedAltogetherIsFiniteWhereTheModelSelects) {
  const double none = -std::numeric_limits<double>::infinity();
  const std::string scores = doubles("w", {2, 3}, {0.5, -1, 2, 1, 2, 3}) +
                             doubles("mask", {2, 3}, {0, 0, none, none, none, none}) + doubles("least", {}, {none}) +
                             doubles("zero", {}, {0}) + node("Add", "w mask", "x") + node("Softmax", "x", "s");
  const std::string loss = node("Mul", "y y", "q") + sumOf("q");
  const SmallStepOptions options{11, {{"train", "^w$"}}, {}};
  const auto attention =
      smallStep(scores + node("IsNaN", "s", "dead") + node("Where", "dead zero s", "y") + loss, 18, {"w"}, options);
  const auto safe =
      smallStep(scores + node("Equal", "x least", "out") + node("Cast", "out", "number", attribute("to", 7)) +
                    ints("last", {1}, {-1}) + node("ReduceMin", "number last", "all", attribute("keepdims", 1)) +
                    node("Cast", "all", "dead", attribute("to", 9)) + node("Where", "dead zero s", "y") + loss,
                18, {"w"}, options);
  // torch.autograd: y = _safe_softmax(w + mask), loss = (y * y).sum()
  const double slope = 0.18946042556950526;
  for (const auto* step : {&attention, &safe}) {
    ASSERT_TRUE(step->has_value()) << step->error().message;
    const std::vector<double>& found = (*step)->gradients.at("w");
    const std::vector<double> expected{slope, -slope, 0, 0, 0, 0};
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9) << i;
  }
  // Selected on a mask of the model's own, PyTorch's gradient is NaN; ours says the same.
  const auto own =
      smallStep(scores + "initializer { name: \"rows\" data_type: 9 dims: 2 dims: 1 int32_data: 0 int32_data: 1 } " +
                    node("Where", "rows zero s", "y") + loss,
                18, {"w"}, options);
  ASSERT_TRUE(own.has_value()) << own.error().message;
  EXPECT_TRUE(std::isnan(own->gradients.at("w")[3]));
}

// The gradient of the factor sums a vector to a scalar beside a convolution that would like another layout; so does that of
// the offset, to a vector of one.
TEST(Gradient, OfAScalarFactorBesideAConvolution) {
  const auto step = smallStep(floats("x", {1, 16, 4, 4}, std::vector<float>(256, 1.0f)) +
                                  floats("w", {16, 16, 1, 1}, std::vector<float>(256, 0.5f)) + floats("factor", {}, {3}) +
                                  floats("offset", {1}, {1}) + node("Conv", "x w", "y") + ints("all", {1}, {-1}) +
                                  node("Relu", "y", "r") + node("Reshape", "r all", "v") +
                                  node("Mul", "v factor", "scaled") + node("Add", "scaled offset", "moved") + sumOf("moved"),
                              17, {"w", "factor", "offset"}, {1, {{"train", "^(w|factor|offset)$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("factor"), (std::vector<double>{256 * 8}));
  EXPECT_EQ(step->gradients.at("offset"), (std::vector<double>{256}));
  EXPECT_EQ(step->gradients.at("w"), std::vector<double>(256, 48));
}

// squeeze(2) of PyTorch with an extent that only the batch tells: the branches of the If differ in rank, so the gradient
// that leaves it has none until it reaches the convolution, whose result has one.
TEST(Gradient, IsShapedLikeItsValueWhereAnIfOfTwoRanksReadsIt) {
  const auto branch = [](const std::string& name, const std::string& body, const std::string& output) {
    return "attribute { name: \"" + name + "\" type: GRAPH g { name: \"" + name + "\" " + body + "output { name: \"" +
           output + "\" } } } ";
  };
  const std::string graph =
      "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 1 } dim { "
      "dim_param: "
      "\"length\" } } } } } " +
      floats("w", {1, 1, 1}, {2}) + floats("b", {1}, {1}) + ints("two", {1}, {2}) + ints("one", {1}, {1}) +
      node("Conv", "x w b", "y") + node("Shape", "y", "extents") + node("Gather", "extents two", "extent") +
      node("Equal", "extent one", "single") + "node { op_type: \"If\" name: \"if\" input: \"single\" output: \"z\" " +
      branch("then_branch", node("Squeeze", "y two", "s"), "s") + branch("else_branch", node("Identity", "y", "i"), "i") +
      "} " + node("Mul", "z z", "q") + sumOf("q");
  for (const int length : {1, 3}) {
    const auto step = smallStep(graph, 17, {"w", "b"}, {1, {{"dim", "length=" + std::to_string(length)}}, {"x"}});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    double dw = 0, db = 0;
    for (const double x : step->values.at("x")) {
      dw += 2 * (2 * x + 1) * x;
      db += 2 * (2 * x + 1);
    }
    EXPECT_NEAR(step->gradients.at("w")[0], dw, 1e-4);
    EXPECT_NEAR(step->gradients.at("b")[0], db, 1e-4);
  }
}

TEST(Gradient, EveryReasonForAStopIsAboutAnInputOutsideTheTable) {
  for (const StopInput& stop : stopInputs()) {
    bool found = false;
    for (const OpDef* op : allOps())
      if (op->name == stop.op && op->gradient) {
        found = true;
        EXPECT_LT(stop.input, op->inputs.most) << stop.op;
        EXPECT_FALSE(maskHas(op->differentiableInputs, stop.input)) << stop.op << " input " << stop.input;
      }
    EXPECT_TRUE(found) << stop.op;
    EXPECT_FALSE(stop.reason.empty()) << stop.op;
  }
}

}  // namespace
}  // namespace stepscope::testing
