// Nodes of opsets 1 to 6: what each computes in its old form, as numbers worked out by hand, and gradients through it.
// ONNX's own tests of these opsets pass too (golden.onnx_backend: the folders pytorch-converted and pytorch-operator).
#include <gtest/gtest.h>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

// loss = Σ y
std::string summed(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

TEST(RaiseEarly, AnOperandIsAlignedAtItsAxis) {
  // x [2, 3, 2]: 1 … 12; b stands along axis 1.
  const std::string x = floats("x", {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) + floats("b", {3}, {1, 10, 100});
  for (const char* extra : {"", "behind"}) {
    // Behind a node whose result no file declares, ranks are not known before inference.
    const bool behind = *extra != 0;
    const auto step = smallStep(
        (behind ? x + node("Abs", "x", "a") : x) +
            node("Mul", behind ? "a b" : "x b", "y", attribute("broadcast", 1) + attribute("axis", 1)) + summed("y"),
        6, {"x", "b"});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_NEAR(step->loss, (1 + 2 + 7 + 8) + 10 * (3 + 4 + 9 + 10) + 100 * (5 + 6 + 11 + 12), 1e-3);
    EXPECT_EQ(step->gradients.at("b"), (std::vector<double>{18, 26, 34}));
    EXPECT_EQ(step->gradients.at("x"), (std::vector<double>{1, 1, 10, 10, 100, 100, 1, 1, 10, 10, 100, 100}));
  }
}

TEST(RaiseEarly, AnAxisCountsFromTheEndWhereItIsNegative) {
  const auto step = smallStep(floats("x", {2, 2}, {1, 2, 3, 4}) + floats("b", {2}, {1, 10}) +
                                  node("Mul", "x b", "y", attribute("broadcast", 1) + attribute("axis", -1)) + summed("y"),
                              6, {"b"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("b"), (std::vector<double>{4, 6}));
}

TEST(RaiseEarly, WithoutAnAxisTheLastOnesAreMeant) {
  const auto step =
      smallStep(floats("x", {2, 2}, {1, 2, 3, 4}) + floats("b", {2}, {1, 10}) +
                    node("Sub", "x b", "y", attribute("broadcast", 1) + attribute("consumed_inputs", {0, 0})) + summed("y"),
                1, {"b"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 10 - 22, 1e-4);
  EXPECT_EQ(step->gradients.at("b"), (std::vector<double>{-2, -2}));
  EXPECT_TRUE(step->warnings.empty()) << step->warnings.front();
}

TEST(RaiseEarly, ASlopePerChannel) {
  const auto step = smallStep(
      floats("x", {1, 2, 2}, {-1, 2, -3, -4}) + floats("s", {2}, {0.5, 0.25}) + node("PRelu", "x s", "y") + summed("y"), 6,
      {"x", "s"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, -0.5 + 2 - 0.75 - 1, 1e-5);
  EXPECT_EQ(step->gradients.at("s"), (std::vector<double>{-1, -7}));
  EXPECT_EQ(step->gradients.at("x"), (std::vector<double>{0.5, 1, 0.25, 0.25}));
}

TEST(RaiseEarly, DropoutTrainsUnlessItIsInTest) {
  const std::string x = floats("x", {64}, std::vector<float>(64, 1));
  const auto test = smallStep(
      x + node("Dropout", "x", "y", attribute("is_test", 1) + realAttribute("ratio", 0.5)) + summed("y"), 6, {"x"});
  ASSERT_TRUE(test.has_value()) << test.error().message;
  EXPECT_EQ(test->gradients.at("x"), std::vector<double>(64, 1));
  const auto trained = smallStep(x + node("Dropout", "x", "y mask", realAttribute("ratio", 0.5)) + summed("y"), 6, {"x"});
  ASSERT_TRUE(trained.has_value()) << trained.error().message;
  int dropped = 0;
  for (const double slope : trained->gradients.at("x")) {
    EXPECT_TRUE(slope == 0 || slope == 2) << slope;
    dropped += slope == 0;
  }
  EXPECT_GT(dropped, 8);
  EXPECT_LT(dropped, 56);
}

TEST(RaiseEarly, ExtentsAndRepeatsBecomeOperands) {
  const auto step =
      smallStep(floats("x", {2, 3}, {1, 2, 3, 4, 5, 6}) + ints("often", {}, {3}) + ints("along", {}, {1}) +
                    node("Reshape", "x", "r", attribute("shape", {3, 2})) + node("Tile", "r often along", "t") +
                    floats("c", {6}, {1, 2, 3, 4, 5, 6}) + node("Mul", "t c", "y", attribute("broadcast", 1)) + summed("y"),
                4, {"x"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("x"), (std::vector<double>{9, 12, 9, 12, 9, 12}));
}

TEST(RaiseEarly, OldNamesOfAttributes) {
  const auto step =
      smallStep(floats("x", {1, 1, 1, 2}, {1, 2}) +
                    node("Upsample", "x", "u", realAttribute("height_scale", 2) + realAttribute("width_scale", 2)) +
                    node("Pad", "u", "p", attribute("paddings", {0, 0, 0, 1, 0, 0, 0, 0}) + realAttribute("value", 7)) +
                    node("Concat", "p p", "both") +
                    node("LpPool", "both", "l", attribute("kernel_shape", {1, 1}) + realAttribute("p", 1)) +
                    node("Cast", "l", "d", textAttribute("to", "DOUBLE")) +
                    node("Cast", "d", "y", textAttribute("to", "FLOAT")) + summed("y"),
                1, {"x"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 2 * (4 * 1 + 4 * 2 + 2 * 7), 1e-4);
  EXPECT_EQ(step->gradients.at("x"), (std::vector<double>{8, 8}));
}

TEST(RaiseEarly, FormsThatCannotBeSaidAreNamed) {
  const auto message = [](const std::string& graph) {
    const auto step = smallStep(floats("x", {2}, {1, 2}) + graph + summed("y"), 4, {"x"});
    return step ? std::string("no error") : step.error().message;
  };
  EXPECT_NE(message(node("Cast", "x", "y", textAttribute("to", "QUATERNION"))).find("type 'QUATERNION' of attribute to"),
            std::string::npos);
  EXPECT_NE(message(node("Dropout", "x", "z mask") + node("Mul", "z mask", "y")).find("its mask is read"),
            std::string::npos);
  EXPECT_NE(message(node("Reshape", "x", "y")).find("no shape; Reshape before opset 5"), std::string::npos);
}

}  // namespace
}  // namespace stepscope::testing
