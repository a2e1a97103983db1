// Chains of nodes as exporters write them that once went wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

std::string sum(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

TEST(ExportedChains, PartsOfASequenceMayDifferInSize) {
  const auto step = smallStep(floats("w", {5}, {1, 2, 3, 4, 5}) + ints("sizes", {2}, {2, 3}) + ints("zero", {}, {0}) +
                                  ints("one", {}, {1}) + floats("a", {2}, {1, 2}) + floats("b", {3}, {3, 4, 5}) +
                                  node("SplitToSequence", "w sizes", "parts") + node("SequenceAt", "parts zero", "p") +
                                  node("SequenceAt", "parts one", "q") + node("Mul", "p a", "pa") +
                                  node("Mul", "q b", "qb") + node("Concat", "pa qb", "y", attribute("axis", 0)) + sum("y"),
                              17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->gradients.at("w")[4], 5, 1e-5);
}

TEST(ExportedChains, NoGradientGoesBackThroughStopGradient) {
  const auto step = smallStep(floats("w", {2}, {3, -4}) + node("StopGradient", "w", "s", "domain: \"stepscope\"") +
                                  node("Mul", "w s", "y") + sum("y"),
                              17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 25, 1e-5);
  EXPECT_NEAR(step->gradients.at("w")[0], 3, 1e-6);
  EXPECT_NEAR(step->gradients.at("w")[1], -4, 1e-6);
}

TEST(ExportedChains, CrossEntropyTakesProbabilitiesOfTheClasses) {
  // Equal scores: the loss is log 2 for every distribution, the gradient (1/2 - t) / rows.
  const std::string inputs = floats("w", {2, 2}, {1, 1, 5, 5}) + floats("t", {2, 2}, {0.9f, 0.1f, 0.3f, 0.7f});
  const auto step = smallStep(inputs + node("SoftmaxCrossEntropyLoss", "w t", "loss"), 17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, std::log(2.0), 1e-6);
  EXPECT_NEAR(step->gradients.at("w")[0], -0.2, 1e-6);
  EXPECT_NEAR(step->gradients.at("w")[3], -0.1, 1e-6);
}

TEST(ExportedChains, TensorsLiftedOutOfTheCodeAreNotTrained) {
  const auto step = smallStep(floats("w", {2}, {3, -4}) + floats("m.lifted_tensor_0", {2}, {5, 6}) +
                                  node("Mul", "w m.lifted_tensor_0", "y") + sum("y"),
                              17, {"m.lifted_tensor_0"});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("lifted_tensor_0"), std::string::npos) << step.error().message;
}

TEST(ExportedChains, UnknownOpsAreNamedBeforeTheLossIs) {
  const auto step = smallStep(floats("w", {1}, {2}) + node("TfIdfVectorizer", "w", "y") + sum("y"), 17, {});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("TfIdfVectorizer 'TfIdfVectorizer_y': not an operator of this build"),
            std::string::npos)
      << step.error().message;
}

TEST(ExportedChains, AConvolutionWithoutBiasMayBringZerosOfAnyShape) {
  // Expand(CastLike(0, x), [C, 2]) is what the dynamo exporter writes for a Conv3d without bias.
  const std::string zeros = node("Constant", "", "nought", realAttribute("value_float", 0)) + node("CastLike", "nought w", "zero") + ints("shape", {2}, {2, 2}) +
                            node("Expand", "zero shape", "bias");
  const std::string x = floats("x", {1, 1, 1, 1, 2}, {3, 4}), w = floats("w", {2, 1, 1, 1, 1}, {1, 2});
  const auto step = smallStep(x + w + zeros + node("Conv", "x w bias", "y") + sum("y"), 18, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 21, 1e-5);
  EXPECT_NEAR(step->gradients.at("w")[1], 7, 1e-5);
}

TEST(ExportedChains, LayerNormalizationOfHalvesWithFloatScaleGivesHalves) {
  // Autocast leaves the scale in float32; what follows is a product of two bfloat16 operands.
  const std::string graph = floats("w", {1, 2}, {1, 3}) + floats("scale", {2}, {1, 1}) + floats("v", {2, 1}, {2, 5}) + node("Cast", "w", "h", attribute("to", 16)) +
                            node("LayerNormalization", "h scale", "n") + node("Cast", "v", "vh", attribute("to", 16)) + node("MatMul", "n vh", "m") +
                            node("Cast", "m", "y", attribute("to", 1)) + sum("y");
  const auto step = smallStep(graph, 18, {"w", "v"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 3, 0.02);
  EXPECT_NEAR(step->gradients.at("v")[0], -1, 0.01);
}

TEST(ExportedChains, OperandsOfAProductThatDifferInTypeAreNamed) {
  const std::string mixed = floats("w", {1, 2}, {1, 3}) + floats("v", {2, 1}, {2, 5}) + node("Cast", "v", "vh", attribute("to", 10));
  for (const char* op : {"MatMul", "Gemm"}) {
    const auto step = smallStep(mixed + node(op, "w vh", "y") + sum("y"), 17, {"w"});
    ASSERT_FALSE(step.has_value());
    EXPECT_NE(step.error().message.find("input 1 is float16; expected float32 as the others"), std::string::npos) << step.error().message;
  }
}

}  // namespace
}  // namespace stepscope::testing
