// What PyTorch's exporters write for hstack and its like: sequences in the branches of an If, and a map over a sequence.
#include <gtest/gtest.h>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

std::string subgraph(const std::string& name, const std::string& body, const std::string& inputs,
                     const std::string& output) {
  std::string text = "attribute { name: \"" + name + "\" type: GRAPH g { name: \"" + name + "\" " + body;
  std::istringstream names(inputs);
  for (std::string input; names >> input;)
    text += "input { name: \"" + input + "\" type { tensor_type { elem_type: 1 } } } ";
  return text + "output { name: \"" + output + "\" } } } ";
}

std::string sumOf(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

// hstack of two vectors through TorchScript: axis 0 for vectors, axis 1 for everything else; here the second would not fit.
TEST(Sequences, OfAnIfWhoseConditionFollowsFromTheRankOfAnElement) {
  const auto joined = [](const std::string& name, std::int64_t axis) {
    return node("ConcatFromSequence", "parts", name, attribute("axis", axis) + attribute("new_axis", 0));
  };
  const std::string graph = floats("a", {2}, {1, 2}) + floats("b", {2}, {3, 4}) + ints("first", {}, {0}) +
                            ints("one", {}, {1}) + node("SequenceConstruct", "a b", "parts") +
                            node("SequenceAt", "parts first", "element") + node("Shape", "element", "extents") +
                            node("Size", "extents", "rank") + node("Equal", "rank one", "vectors") +
                            "node { op_type: \"If\" name: \"if\" input: \"vectors\" output: \"y\" " +
                            subgraph("then_branch", joined("t", 0), "", "t") +
                            subgraph("else_branch", joined("e", 1), "", "e") + "} " + node("Mul", "y y", "q") + sumOf("q");
  const auto step = smallStep(graph, 17, {"a", "b"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->loss, 30);
  EXPECT_EQ(step->gradients.at("a"), (Numbers{2, 4}));
  EXPECT_EQ(step->gradients.at("b"), (Numbers{6, 8}));
}

// hstack through dynamo: atleast_1d of every element, whose body asks for the rank.
TEST(Sequences, AreMappedElementByElement) {
  const std::string deeper = node("Reshape", "x wide", "r");
  const std::string body = node("Shape", "x", "s") + node("Size", "s", "rank") + node("Equal", "rank none", "scalar") +
                           "node { op_type: \"If\" name: \"atleast\" input: \"scalar\" output: \"out\" " +
                           subgraph("then_branch", deeper, "", "r") +
                           subgraph("else_branch", node("Mul", "x factor", "m"), "", "m") + "} ";
  const std::string graph =
      floats("a", {2}, {1, 2}) + floats("b", {}, {3}) + floats("by", {}, {5}) + ints("none", {}, {0}) +
      ints("wide", {1}, {1}) + node("SequenceConstruct", "a b", "parts") +
      "node { op_type: \"SequenceMap\" name: \"map\" input: \"parts\" input: \"by\" output: \"mapped\" " +
      subgraph("body", body, "x factor", "out") + "} " + node("ConcatFromSequence", "mapped", "y", attribute("axis", 0)) +
      node("Mul", "y y", "q") + sumOf("q");
  const auto step = smallStep(graph, 17, {"a", "b"}, {1, {{"train", "^(a|b)$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->loss, 25 + 100 + 9);
  EXPECT_EQ(step->gradients.at("a"), (Numbers{50, 100}));
  EXPECT_EQ(step->gradients.at("b"), (Numbers{6}));
}

TEST(Sequences, OfUnknownElementsAreNotMapped) {
  const std::string graph =
      "input { name: \"n\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"rows\" } } } } } " +
      floats("w", {}, {1}) + node("SplitToSequence", "n", "parts") +
      "node { op_type: \"SequenceMap\" name: \"map\" input: \"parts\" output: \"mapped\" " +
      subgraph("body", node("Relu", "x", "out"), "x", "out") + "} " +
      node("ConcatFromSequence", "mapped", "y", attribute("axis", 0)) + node("Mul", "y w", "q") + sumOf("q");
  const auto step = smallStep(graph, 17, {"w"});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("SequenceMap 'map'"), std::string::npos) << step.error().message;
}

std::string tensorType(const char* around) {
  return std::string("type { ") + around +
         " { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } } ";
}

// What a graph takes as a sequence is an input for each element that it reads; an optional one is there.
TEST(Sequences, ThatAreFedAreAnInputForEachElement) {
  const std::string graph = "input { name: \"xs\" " + tensorType("sequence_type") + "} input { name: \"maybe\" " +
                            tensorType("optional_type") + "} " + floats("w", {2}, {3, 5}) + ints("two", {}, {2}) +
                            ints("zero", {}, {0}) + node("SequenceAt", "xs two", "x") + node("SequenceAt", "xs zero", "y") +
                            node("OptionalGetElement", "maybe", "z") + node("Mul", "x w", "p") + node("Mul", "y z", "q") +
                            node("Add", "p q", "r") + sumOf("r");
  const auto step = smallStep(graph, 17, {"w"}, {1, {}, {"xs.0", "xs.2", "maybe"}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  const Numbers &y = step->values.at("xs.0"), &x = step->values.at("xs.2"), &z = step->values.at("maybe");
  EXPECT_NEAR(step->loss, 3 * x[0] + 5 * x[1] + y[0] * z[0] + y[1] * z[1], 1e-5);
  EXPECT_EQ(step->gradients.at("w"), x);
}

// What a graph gives as a sequence is an output for each element; an optional one is its value.
TEST(Sequences, ThatAreOutputsAreAnOutputForEachElement) {
  const std::string graph = "output { name: \"parts\" " + tensorType("sequence_type") + "} output { name: \"maybe\" " +
                            tensorType("optional_type") + "} " + floats("a", {2}, {1, 2}) + floats("b", {2}, {3, 4}) +
                            node("Mul", "a b", "p") + node("Add", "a b", "s") + node("SequenceConstruct", "s p", "parts") +
                            node("Optional", "p", "maybe") + sumOf("p");
  const auto step = smallStep(graph, 17, {"a"}, {1, {}, {"parts.0", "parts.1", "maybe.value"}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->values.at("parts.0"), (Numbers{4, 6}));
  EXPECT_EQ(step->values.at("parts.1"), (Numbers{3, 8}));
  EXPECT_EQ(step->values.at("maybe.value"), (Numbers{3, 8}));
  EXPECT_EQ(step->gradients.at("a"), (Numbers{3, 4}));
}

TEST(Sequences, ThatAreFedHaveAKnownLength) {
  const std::string graph = "input { name: \"xs\" " + tensorType("sequence_type") + "} " + floats("w", {1}, {3}) +
                            node("ConcatFromSequence", "xs", "x", attribute("axis", 0)) + node("Mul", "x w", "p") +
                            sumOf("p");
  const auto step = smallStep(graph, 17, {"w"});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("'xs': type sequence(float32[2]), read by ConcatFromSequence"), std::string::npos)
      << step.error().message;
}

// Quantisers of other tools write a scale of one element beside a scalar zero point.
TEST(Quantisation, TakesAScaleOfOneElementBesideAScalarZeroPoint) {
  const std::string zero = "initializer { name: \"zero\" data_type: 3 int32_data: 1 } ";
  const std::string graph = floats("w", {3}, {0.5, -1, 2}) + floats("scale", {1}, {0.5f}) + zero +
                            node("QuantizeLinear", "w scale zero", "q") + node("DequantizeLinear", "q scale zero", "d") +
                            sumOf("d");
  const auto step = smallStep(graph, 17, {"w"}, {1, {{"train", "^w$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->loss, 1.5);
  EXPECT_EQ(step->gradients.at("w"), (Numbers{1, 1, 1}));
}

}  // namespace
}  // namespace stepscope::testing
