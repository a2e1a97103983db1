// Operators of com.microsoft that are rewritten into public ones: value and gradient of one step.
#include <gtest/gtest.h>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

const std::string kMicrosoft = "domain: \"com.microsoft\"";

std::string microsoft(const std::string& op, const std::string& inputs, const std::string& outputs,
                      const std::string& more = "") {
  return node(op, inputs, outputs, kMicrosoft + more);
}

std::string sum(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

void expectGradient(const Result<SmallStep>& step, double loss, const std::vector<double>& gradient) {
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, loss, 1e-4);
  const auto& found = step->gradients.at("w");
  ASSERT_EQ(found.size(), gradient.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], gradient[i], 1e-4) << i;
}

TEST(RaiseMicrosoft, TriluKeepsATriangle) {
  const auto step = smallStep(
      floats("w", {2, 2}, {1, 2, 3, 4}) + microsoft("Trilu", "w", "y", attribute("upper", 0)) + sum("y"), 12, {"w"});
  expectGradient(step, 8, {1, 0, 1, 1});
}

TEST(RaiseMicrosoft, GridSampleTakesTheNamesOfItsOwnModes) {
  // The middle of four pixels.
  const auto step = smallStep(floats("w", {1, 1, 2, 2}, {1, 2, 3, 6}) + floats("grid", {1, 1, 1, 2}, {0, 0}) +
                                  microsoft("GridSample", "w grid", "y", textAttribute("mode", "bilinear")) + sum("y"),
                              13, {"w"});
  expectGradient(step, 3, {0.25, 0.25, 0.25, 0.25});
}

TEST(RaiseMicrosoft, TransposeMatMulIsAProduct) {
  const auto step =
      smallStep(floats("w", {2, 1}, {1, 2}) + floats("b", {2, 1}, {3, 5}) +
                    microsoft("TransposeMatMul", "w b", "y", attribute("transA", 1) + realAttribute("alpha", 2)) + sum("y"),
                13, {"w"});
  expectGradient(step, 26, {6, 10});
}

TEST(RaiseMicrosoft, ReduceSumTrainingTakesItsAxesAsInput) {
  const auto step = smallStep(floats("w", {2, 2}, {1, 2, 3, 4}) + ints("axes", {1}, {1}) + floats("f", {2}, {1, 10}) +
                                  microsoft("ReduceSumTraining", "w axes", "rows", attribute("keepdims", 0)) +
                                  node("Mul", "rows f", "y") + sum("y"),
                              12, {"w"});
  expectGradient(step, 73, {1, 1, 10, 10});
}

TEST(RaiseMicrosoft, ScaleMultipliesOrDivides) {
  const std::string inputs = floats("w", {2}, {1, 2}) + ints("four", {}, {4});
  expectGradient(smallStep(inputs + microsoft("Scale", "w four", "y") + sum("y"), 13, {"w"}), 12, {4, 4});
  expectGradient(smallStep(inputs + microsoft("Scale", "w four", "y", attribute("scale_down", 1)) + sum("y"), 13, {"w"}),
                 0.75, {0.25, 0.25});
}

TEST(RaiseMicrosoft, ScaledSumWeighsItsInputs) {
  const auto step =
      smallStep(floats("w", {2}, {1, 2}) + floats("b", {2}, {10, 20}) +
                    microsoft("ScaledSum", "w b w", "y",
                              realAttribute("scale_0", 2) + realAttribute("scale_1", 0.5) + realAttribute("scale_2", 3)) +
                    sum("y"),
                13, {"w"});
  expectGradient(step, 30, {5, 5});
}

TEST(RaiseMicrosoft, BiasDropoutAddsBiasAndResidual) {
  // In test mode it drops nothing.
  const auto step =
      smallStep(floats("w", {2}, {1, 2}) + floats("x", {2, 2}, {1, 1, 1, 1}) + floats("r", {2, 2}, {5, 5, 5, 5}) +
                    floats("ratio", {}, {0.5f}) + microsoft("BiasDropout", "x w r ratio", "y mask") + sum("y"),
                13, {"w"});
  expectGradient(step, 30, {2, 2});
}

TEST(RaiseMicrosoft, BatchNormInternalUsesTheStatisticsOfTheBatch) {
  // Two rows become -1 and 1 whatever they were, so the loss does not depend on x: Σ (scale · ±1)² = 2 · scale².
  const std::string inputs = floats("x", {2, 1}, {3, 7}) + floats("w", {1}, {3}) + floats("b", {1}, {0}) +
                             floats("mean", {1}, {0}) + floats("var", {1}, {1});
  const auto step = smallStep(
      inputs + microsoft("BatchNormInternal", "x w b mean var", "y m2 v2 saved1 saved2", realAttribute("epsilon", 1e-12)) +
          node("ReduceSumSquare", "y", "loss", attribute("keepdims", 0)),
      15, {"w"});
  expectGradient(step, 18, {12});
  const auto used = smallStep(inputs + microsoft("BatchNormInternal", "x w b mean var", "y m2 v2 saved1 saved2") +
                                  node("Mul", "y saved1", "z") + sum("z"),
                              15, {"w"});
  ASSERT_FALSE(used.has_value());
  EXPECT_NE(used.error().message.find("output 'saved1' (saved statistics) is used"), std::string::npos)
      << used.error().message;
}

}  // namespace
}  // namespace stepscope::testing
