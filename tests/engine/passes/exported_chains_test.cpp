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

TEST(ExportedChains, BoundsOfClipAreTrainedWhereAModuleOwnsThem) {
  // min(max(w, 0), 2): two of w lie between, one above.
  const auto clipped = [](const std::string& high, const std::vector<std::string>& parameters) {
    return smallStep(floats("w", {4}, {-1, 0.5f, 1.5f, 3}) + floats("low", {}, {0}) + floats(high, {}, {2}) +
                         node("Clip", "w low " + high, "y") + sum("y"),
                     17, parameters);
  };
  const auto learned = clipped("act.alpha", {"w", "act.alpha"});
  ASSERT_TRUE(learned.has_value()) << learned.error().message;
  EXPECT_NEAR(learned->loss, 4, 1e-6);
  EXPECT_NEAR(learned->gradients.at("act.alpha")[0], 1, 1e-6);
  EXPECT_EQ(learned->gradients.at("w"), (std::vector<double>{0, 1, 1, 0}));
  const auto limit = clipped("high", {"high"});
  ASSERT_FALSE(limit.has_value());
  EXPECT_NE(limit.error().message.find("high"), std::string::npos) << limit.error().message;
}

// The int8 zero point 1 and the scale 0.5: steps of 0.5 from -64.5 to 63.
std::string quantised(const std::string& between) {
  return floats("w", {4}, {0.6f, -70, 62.9f, 64}) + floats("scale", {}, {0.5f}) +
         "initializer { name: \"zero\" data_type: 3 int32_data: 1 } " + node("QuantizeLinear", "w scale zero", "q") +
         between + node("DequantizeLinear", between.empty() ? "q scale zero" : "c scale zero", "d") +
         floats("f", {4}, {1, 2, 3, 4}) + node("Mul", "d f", "y") + sum("y");
}

TEST(ExportedChains, QuantisationInTrainingHandsItsGradientOn) {
  const auto step = smallStep(quantised(""), 13, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 0.5 - 2 * 64.5 + 3 * 63 + 4 * 63, 1e-4);
  EXPECT_EQ(step->gradients.at("w"), (std::vector<double>{1, 0, 3, 0}));
  // Seven bits, as PyTorch exports them: a Clip between the two.
  const std::string clip = "initializer { name: \"top\" data_type: 3 int32_data: 100 } " + node("Clip", "q _ top", "c");
  const auto seven = smallStep(quantised(clip), 13, {"w"});
  ASSERT_TRUE(seven.has_value()) << seven.error().message;
  EXPECT_EQ(seven->gradients.at("w"), (std::vector<double>{1, 0, 0, 0}));
  // The scale has no gradient through the pair.
  EXPECT_FALSE(smallStep(quantised(""), 13, {"scale"}).has_value());
}

TEST(ExportedChains, QuantisationPerChannelHandsItsGradientOn) {
  const auto step = smallStep(floats("w", {2, 2}, {1, 100, 1, 100}) + floats("scale", {2}, {0.5f, 1}) +
                                  "initializer { name: \"zero\" dims: 2 data_type: 3 int32_data: [0, 0] } " +
                                  node("QuantizeLinear", "w scale zero", "q", attribute("axis", 0)) +
                                  node("DequantizeLinear", "q scale zero", "d", attribute("axis", 0)) + sum("d"),
                              13, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 1 + 63.5 + 1 + 100, 1e-4);
  EXPECT_EQ(step->gradients.at("w"), (std::vector<double>{1, 0, 1, 1}));
}

TEST(ExportedChains, MeanOfALayerNormalizationCarriesAGradient) {
  const auto step = smallStep(floats("w", {1, 4}, {1, 2, 3, 6}) + floats("scale", {4}, {1, 1, 1, 1}) +
                                  node("LayerNormalization", "w scale", "n mean") + node("Mul", "mean mean", "y") + sum("y"),
                              17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 9, 1e-5);
  for (const double slope : step->gradients.at("w")) EXPECT_NEAR(slope, 1.5, 1e-5);
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
  const std::string zeros = node("Constant", "", "nought", realAttribute("value_float", 0)) +
                            node("CastLike", "nought w", "zero") + ints("shape", {2}, {2, 2}) +
                            node("Expand", "zero shape", "bias");
  const std::string x = floats("x", {1, 1, 1, 1, 2}, {3, 4}), w = floats("w", {2, 1, 1, 1, 1}, {1, 2});
  const auto step = smallStep(x + w + zeros + node("Conv", "x w bias", "y") + sum("y"), 18, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 21, 1e-5);
  EXPECT_NEAR(step->gradients.at("w")[1], 7, 1e-5);
}

TEST(ExportedChains, LayerNormalizationOfHalvesWithFloatScaleGivesHalves) {
  // Autocast leaves the scale in float32; what follows is a product of two bfloat16 operands.
  const std::string graph = floats("w", {1, 2}, {1, 3}) + floats("scale", {2}, {1, 1}) + floats("v", {2, 1}, {2, 5}) +
                            node("Cast", "w", "h", attribute("to", 16)) + node("LayerNormalization", "h scale", "n") +
                            node("Cast", "v", "vh", attribute("to", 16)) + node("MatMul", "n vh", "m") +
                            node("Cast", "m", "y", attribute("to", 1)) + sum("y");
  const auto step = smallStep(graph, 18, {"w", "v"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 3, 0.02);
  EXPECT_NEAR(step->gradients.at("v")[0], -1, 0.01);
}

TEST(ExportedChains, OperandsOfAProductThatDifferInTypeAreNamed) {
  const std::string mixed =
      floats("w", {1, 2}, {1, 3}) + floats("v", {2, 1}, {2, 5}) + node("Cast", "v", "vh", attribute("to", 10));
  for (const char* op : {"MatMul", "Gemm"}) {
    const auto step = smallStep(mixed + node(op, "w vh", "y") + sum("y"), 17, {"w"});
    ASSERT_FALSE(step.has_value());
    EXPECT_NE(step.error().message.find("input 1 is float16; expected float32 as the others"), std::string::npos)
        << step.error().message;
  }
}

}  // namespace
}  // namespace stepscope::testing
