// Which floats of a file are weights: constants in the role of one are trained, numbers of a formula are not.
#include "engine/passes/constant_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

// A Constant node of floats.
std::string constant(const std::string& name, const std::vector<std::int64_t>& dims, const Numbers& values) {
  std::string text = "node { op_type: \"Constant\" name: \"make_" + name + "\" output: \"" + name +
                     "\" attribute { name: \"value\" type: TENSOR t { data_type: 1";
  for (const std::int64_t dim : dims) text += " dims: " + std::to_string(dim);
  for (const double value : values) text += " float_data: " + std::to_string(value);
  return text + " } } } ";
}

const std::string kImage = floats("x", {1, 1, 2, 2}, {1, 2, 3, 4});

std::string sumOf(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

// As Paddle writes it: weight, bias and statistics are Constants, the bias comes through a Reshape and an Add.
TEST(ConstantWeights, OfConvolutionsBiasesAndNormalisationsAreParametersWithTheirNames) {
  const std::string graph =
      kImage + constant("conv.w", {1, 1, 1, 1}, {2}) + constant("conv.b", {1}, {0.5}) + ints("shape", {4}, {1, 1, 1, 1}) +
      constant("norm.w", {1}, {3}) + constant("norm.b", {1}, {1}) + constant("norm.mean", {1}, {0}) +
      constant("norm.var", {1}, {1}) + node("Conv", "x conv.w", "c") + node("Reshape", "conv.b shape", "b") +
      node("Add", "c b", "h") +
      node("BatchNormalization", "h norm.w norm.b norm.mean norm.var", "y", realAttribute("epsilon", 0)) + sumOf("y");
  const auto step = smallStep(graph, 12, {"conv.w", "conv.b", "norm.w", "norm.b"}, {1, {{"freeze", "^x$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("conv.w"), (Numbers{30}));
  EXPECT_EQ(step->gradients.at("conv.b"), (Numbers{12}));
  EXPECT_EQ(step->gradients.at("norm.w"), (Numbers{22}));
  EXPECT_EQ(step->gradients.at("norm.b"), (Numbers{4}));
  EXPECT_EQ(step->state.at("norm.mean"), (Numbers{0})) << "statistics stay statistics";
  EXPECT_FALSE(smallStep(graph, 12, {"norm.var"}, {1, {{"freeze", "^x$"}}, {}}));
}

TEST(ConstantWeights, InTheBranchesOfAnIfAreParameters) {
  const auto branch = [](const std::string& name, double weight) {
    return "attribute { name: \"" + name + "\" type: GRAPH g { name: \"" + name + "\" " +
           constant(name + ".w", {2, 1}, {weight, 1}) + node("MatMul", "x " + name + ".w", name + "_y") +
           "output { name: \"" + name + "_y\" } } } ";
  };
  const std::string graph = floats("x", {1, 2}, {3, 4}) +
                            "initializer { name: \"yes\" data_type: 9 int32_data: 1 } node { op_type: \"If\" name: \"if\" "
                            "input: \"yes\" output: \"y\" " +
                            branch("then_branch", 2) + branch("else_branch", 5) + "} " + sumOf("y");
  const auto step = smallStep(graph, 17, {"then_branch.w"}, {1, {{"freeze", "^x$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("then_branch.w"), (Numbers{3, 4}));
}

// As PyTorch's exporter sorts the gates of an LSTM: every operand comes through Slice, Concat and Unsqueeze.
TEST(ConstantWeights, ThatReachAnLstmInPartsAreParameters) {
  const auto sorted = [](const std::string& name) {
    std::string text;
    for (const int part : {0, 1, 2, 3})
      text += node("Slice", name + " n" + std::to_string(part) + " n" + std::to_string(part + 1) + " n0",
                   name + "_" + std::to_string(part));
    return text +
           node("Concat", name + "_0 " + name + "_3 " + name + "_1 " + name + "_2", name + "_s", attribute("axis", 0)) +
           node("Unsqueeze", name + "_s n0", name + "_u");
  };
  std::string graph = floats("x", {2, 1, 1}, {1, 2});
  for (const int n : {0, 1, 2, 3, 4}) graph += ints("n" + std::to_string(n), {1}, {n});
  graph += constant("wi", {4, 1}, {0.1, 0.2, 0.3, 0.4}) + constant("wh", {4, 1}, {0.4, 0.3, 0.2, 0.1}) +
           constant("bi", {4}, {0.1, 0.1, 0.2, 0.2}) + constant("bh", {4}, {0, 0.1, 0, 0.1}) + sorted("wi") + sorted("wh") +
           sorted("bi") + sorted("bh") + node("Concat", "bi_u bh_u", "b", attribute("axis", 1)) +
           node("LSTM", "x wi_u wh_u b", "y", attribute("hidden_size", 1)) + sumOf("y");
  const auto step = smallStep(graph, 17, {"wi", "wh", "bi", "bh"}, {1, {{"freeze", "^x$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  for (const char* name : {"wi", "wh", "bi", "bh"})
    EXPECT_TRUE(std::ranges::all_of(step->gradients.at(name), [](double g) { return g != 0; })) << name;
  EXPECT_EQ(step->gradients.at("bi"), step->gradients.at("bh")) << "both are added to the same gates";
}

TEST(ConstantWeights, ThatReachConvolutionsAndProductsThroughACastOrATransposeAreParameters) {
  const std::string half = "attribute { name: \"to\" type: INT i: 11 } ",
                    back = "attribute { name: \"to\" type: INT i: 1 } ";
  const std::string graph = kImage + constant("k", {2, 1, 1, 1}, {2, 3}) + constant("m", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}) +
                            ints("zero", {1}, {0}) + ints("one", {1}, {1}) + ints("flat", {2}, {1, 4}) +
                            node("Slice", "k zero one zero", "k1") + node("Cast", "k1", "k64", half) +
                            node("Cast", "k64", "k32", back) + node("Conv", "x k32", "c") + node("Reshape", "c flat", "r") +
                            node("Transpose", "m", "t") +
                            node("Split", "m", "ma mb", attribute("axis", 1) + attribute("num_outputs", 2)) +
                            node("MatMul", "r ma", "y") + sumOf("y") + node("Identity", "t", "unused");
  const auto step = smallStep(graph, 18, {"k", "m"}, {1, {{"freeze", "^x$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("k"), (Numbers{1 * 1 + 2 * 3 + 3 * 5 + 4 * 7, 0}));
  EXPECT_EQ(step->gradients.at("m"), (Numbers{2, 0, 4, 0, 6, 0, 8, 0}));
}

// Zeros that are put before features are no weights of what reads both.
TEST(ConstantWeights, AreNoPartOfWhatIsComputed) {
  const std::string graph = floats("w", {1, 2}, {3, 4}) + constant("zeros", {1, 2}, {0, 0}) +
                            node("Concat", "zeros w", "both", attribute("axis", 1)) + constant("m", {4, 1}, {1, 2, 3, 4}) +
                            node("MatMul", "both m", "y") + sumOf("y");
  // Both stored: parameters. Behind a computation: not.
  EXPECT_TRUE(smallStep(graph, 17, {"w", "zeros", "m"}).has_value());
  const std::string computed = floats("w", {1, 2}, {3, 4}) + constant("zeros", {1, 2}, {0, 0}) + node("Tanh", "w", "f") +
                               node("Concat", "zeros f", "both", attribute("axis", 1)) +
                               constant("m", {4, 1}, {1, 2, 3, 4}) + node("MatMul", "both m", "y") + sumOf("y");
  EXPECT_TRUE(smallStep(computed, 17, {"w", "m"}).has_value());
  EXPECT_FALSE(smallStep(computed, 17, {"zeros"}).has_value());
}

TEST(ConstantWeights, AreNeitherNumbersNorMasksNorTheFrequenciesOfPositions) {
  const std::string graph = floats("w", {1, 2}, {3, 4}) + constant("eps", {}, {1}) + constant("mean", {2}, {1, 2}) +
                            constant("frequencies", {1, 2}, {0.5, 0.25}) + ints("from", {}, {0}) + ints("to", {}, {3}) +
                            ints("by", {}, {1}) + ints("column", {1}, {1}) + node("Range", "from to by", "positions") +
                            node("Unsqueeze", "positions column", "p") + node("Cast", "p", "pf", attribute("to", 1)) +
                            node("MatMul", "pf frequencies", "angles") + node("Add", "w eps", "a") +
                            node("Sub", "a mean", "b") + node("Mul", "b angles", "y") + sumOf("y");
  const auto step = smallStep(graph, 17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->state.size(), 1u);
}

// What tf2onnx and jax2onnx store beside the variables.
TEST(TrainedSet, LeavesOutTheNumbersOfAFormulaAndWhatHoldsAnInfinity) {
  const std::string infinity = "initializer { name: \"SelectV2/e:0\" data_type: 1 float_data: -inf } ";
  const std::string graph =
      floats("MatMul/ReadVariableOp:0", {2, 2}, {1, 2, 3, 4}) + floats("x", {1, 2}, {1, 1}) +
      floats("mul_1/ReadVariableOp:0", {}, {2}) + floats("Gelu/mul_2/x:0", {}, {0.7978f}) +
      floats("add_1/y:0", {1}, {1e-6f}) + floats("tmp_4", {}, {3}) + floats("stft.basis_buffer", {1, 2}, {1, 2}) +
      floats("block.0.logit_scale", {}, {1}) + floats("temperature", {}, {1}) + infinity + floats("Greater/y:0", {}, {-9}) +
      node("MatMul", "x MatMul/ReadVariableOp:0", "h") + node("Mul", "h Gelu/mul_2/x:0", "a") +
      node("Mul", "a tmp_4", "a2") + node("Mul", "a2 stft.basis_buffer", "a3") + node("Add", "a3 add_1/y:0", "b") +
      node("Mul", "b mul_1/ReadVariableOp:0", "c") + node("Mul", "c block.0.logit_scale", "d") +
      node("Mul", "d temperature", "e") + node("Greater", "e Greater/y:0", "g") + node("Where", "g e SelectV2/e:0", "f") +
      node("Softmax", "f", "s") + node("Mul", "s s", "q") + sumOf("q");
  SmallStepOptions options{1, {{"freeze", "^x$"}, {"lr", "0"}}, {}};
  const std::vector<std::string> variables{"MatMul/ReadVariableOp:0", "mul_1/ReadVariableOp:0", "block.0.logit_scale",
                                           "temperature"};
  const auto step = smallStep(graph, 17, variables, options);
  ASSERT_TRUE(step.has_value()) << step.error().message;
  for (const std::string& name : variables)
    for (const double value : step->state.at(name)) EXPECT_TRUE(std::isfinite(value)) << name;
  EXPECT_TRUE(std::isinf(step->state.at("SelectV2/e:0")[0])) << "0 * -inf would have made NaN of it";
  for (const char* number : {"Gelu/mul_2/x:0", "add_1/y:0", "SelectV2/e:0", "tmp_4", "stft.basis_buffer"}) {
    EXPECT_FALSE(smallStep(graph, 17, {number}, options).has_value()) << number << " is trained";
    options.settings["train"] = number;
    EXPECT_TRUE(smallStep(graph, 17, {number}, options).has_value()) << number << " is not trained although selected";
    options.settings.erase("train");
  }
}

// The numbers of PyTorch 2.15: F.batch_norm(x * a, mean, var, w, b, training, momentum=0.5), the sum of y².
TEST(ConstantWeights, FrozenNormalisationIsOpenedForTraining) {
  const std::string graph =
      floats("x", {4, 1}, {1, 2, 4, 9}) + floats("a", {1}, {2}) + floats("w", {1}, {3}) + floats("b", {1}, {0.5f}) +
      floats("mean", {1}, {1}) + floats("var", {1}, {4}) + node("Mul", "x a", "h") +
      node("BatchNormalization", "h w b mean var", "y", realAttribute("epsilon", 0) + realAttribute("momentum", 0.5)) +
      node("Mul", "y y", "q") + sumOf("q");
  const auto frozen = smallStep(graph, 17, {"w"}, {1, {{"train", "^[wb]$"}}, {}});
  ASSERT_TRUE(frozen.has_value()) << frozen.error().message;
  EXPECT_NEAR(frozen->loss, 826, 1e-2);
  EXPECT_NEAR(frozen->state.at("mean")[0], 1, 0);
  const auto open = smallStep(graph, 17, {"w", "b"}, {1, {{"train", "^[wb]$"}, {"batch-norm", "batch"}}, {}});
  ASSERT_TRUE(open.has_value()) << open.error().message;
  EXPECT_NEAR(open->loss, 9 * 4 + 4 * 0.25, 1e-4);  // normalised: the sum of squares is the count
  EXPECT_NEAR(open->gradients.at("w")[0], 2 * 3 * 4, 1e-4);
  EXPECT_NEAR(open->gradients.at("b")[0], 2 * 0.5 * 4, 1e-4);
  EXPECT_NEAR(open->state.at("mean")[0], 0.5 * 1 + 0.5 * 8, 1e-5);
  EXPECT_NEAR(open->state.at("var")[0], 0.5 * 4 + 0.5 * 38, 1e-4);  // ONNX: the population variance
  const auto none = smallStep(floats("w", {1}, {3}) + node("Mul", "w w", "q") + sumOf("q"), 17, {},
                              {1, {{"train", "^w$"}, {"batch-norm", "batch"}}, {}});
  ASSERT_TRUE(none.has_value()) << none.error().message;
  EXPECT_TRUE(std::ranges::any_of(none->warnings, [](const std::string& warning) {
    return warning.find("no frozen BatchNormalization") != std::string::npos;
  }));
}

}  // namespace
}  // namespace stepscope::testing
