// Quirks of reference/ort_graph.md §14 about slices, scatters and movement (the others and those left out:
// ort_quirks_test.cpp).
#include <cmath>

#include "tests/engine/autodiff/slopes.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

TEST(OrtQuirks, Q1_SplitWithAnUnusedOutputGivesZerosOfItsShape) {
  const auto step = smallStep(floats("w", {6}, {1, 2, 3, 4, 5, 6}) + ints("sizes", {3}, {1, 3, 2}) + floats("a", {1}, {7}) +
                                  floats("b", {2}, {8, 9}) + node("Split", "w sizes", "p q r") + node("Mul", "p a", "pa") +
                                  node("Mul", "r b", "rb") + node("Concat", "pa rb", "y", attribute("axis", 0)) + sumOf("y"),
                              17, {"w"}, {1, {{"freeze", "^[ab]$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("w"), (Numbers{7, 0, 0, 0, 8, 9}));
}

// y = Scatter(w, updates), loss = sum of y * y * c; both operands against differences.
void scatterAgrees(const std::string& op, const std::string& indices, const std::string& reduction) {
  const std::string fixed = doubles("k", {4}, {1, -2, 3, 0.5}) + indices;
  const auto tail = [&] {
    return node(op, "w at u", "y", textAttribute("reduction", reduction.c_str())) +
           node("StopGradient", "k", "c", "domain: \"stepscope\"") + node("Mul", "y y", "q") + node("Mul", "q c", "z") +
           sumOf("z");
  };
  const Numbers data{1.5, -0.7, 2.2, 0.9}, updates{0.4, 2.9, -1.3};
  expectSlopes([&](const Numbers& w) { return fixed + doubles("w", {4}, w) + doubles("u", {3}, updates) + tail(); }, "w",
               data);
  expectSlopes([&](const Numbers& u) { return fixed + doubles("w", {4}, data) + doubles("u", {3}, u) + tail(); }, "u",
               updates);
}

TEST(OrtQuirks, Q3_ScattersWithAReductionHaveTheRightSlopes) {
  // Element 2 is written twice where the reduction allows it.
  for (const char* reduction : {"none", "add", "mul", "min", "max"}) {
    SCOPED_TRACE(reduction);
    const bool none = std::string(reduction) == "none";
    scatterAgrees("ScatterElements", ints("at", {3}, {2, 0, none ? 1 : 2}), reduction);
    scatterAgrees("ScatterND", ints("at", {3, 1}, {2, 0, none ? 1 : 2}), reduction);
  }
}

TEST(OrtQuirks, Q7_ScatterNDInDoubleFillsWithDoubleZeros) {
  const auto step = smallStep(doubles("w", {3}, {1, 2, 3}) + doubles("u", {1}, {0.1}) + ints("at", {1, 1}, {1}) +
                                  node("ScatterND", "w at u", "y") + node("Mul", "y y", "q") + sumOf("q"),
                              17, {"w", "u"}, {11, {}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("w"), (Numbers{2, 0, 6}));
  EXPECT_EQ(step->gradients.at("u"), Numbers{0.2});
}

TEST(OrtQuirks, Q9_ASliceDoesNotMovePastAReshapeThatMixesItsAxis) {
  // [2, 6, 4, 1] seen as [3, 2, 4, 2], then rows 1 and 2 of axis 2: element f of the product is kept where (f / 2) % 4 is 1
  // or 2.
  std::vector<float> x, w;
  for (int i = 0; i < 12 * 2; ++i) x.push_back(static_cast<float>(std::sin(1 + i)));
  for (int i = 0; i < 2 * 4; ++i) w.push_back(static_cast<float>(std::cos(2 + i)));
  const std::string graph = floats("x", {12, 2}, x) + floats("w", {2, 4}, w) + ints("s1", {4}, {2, 6, 4, 1}) +
                            ints("s2", {4}, {3, 2, 4, 2}) + ints("from", {1}, {1}) + ints("to", {1}, {3}) +
                            ints("axis", {1}, {2}) + node("MatMul", "x w", "y") + node("Reshape", "y s1", "a") +
                            node("Reshape", "a s2", "b") + node("Slice", "b from to axis", "c") + node("Mul", "c c", "q") +
                            sumOf("q");
  const auto step = smallStep(graph, 17, {"w"}, {1, {{"freeze", "^x$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  Numbers expected(8, 0.0);
  double loss = 0;
  for (int row = 0; row < 12; ++row)
    for (int column = 0; column < 4; ++column) {
      const int part = (row * 4 + column) / 2 % 4;
      if (part != 1 && part != 2) continue;
      double y = 0;
      for (int k = 0; k < 2; ++k) y += static_cast<double>(x[row * 2 + k]) * w[k * 4 + column];
      loss += y * y;
      for (int k = 0; k < 2; ++k) expected[k * 4 + column] += 2 * y * x[row * 2 + k];
    }
  EXPECT_NEAR(step->loss, loss, 1e-4);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(step->gradients.at("w")[i], expected[i], 1e-4) << i;
}

TEST(OrtQuirks, Q10_ASliceMovesPastDropoutAndKeepsItsMask) {
  const std::string graph = floats("x", {8, 4}, std::vector<float>(32, 0.5f)) +
                            floats("w", {4, 16}, std::vector<float>(64, 0.25f)) + floats("half", {}, {0.5f}) +
                            "initializer { name: \"on\" data_type: 9 int32_data: 1 } " + ints("from", {1}, {3}) +
                            ints("to", {1}, {6}) + ints("axis", {1}, {0}) + node("MatMul", "x w", "y") +
                            node("Dropout", "y half on", "d") + node("Slice", "d from to axis", "c") + sumOf("c");
  const SmallStepOptions moving{1, {{"freeze", "^(x|half)$"}}, {"c"}};
  const SmallStepOptions still{1, {{"freeze", "^(x|half)$"}, {"pass.hoist_slices", "off"}}, {"c"}};
  const auto with = smallStep(graph, 17, {"w"}, moving), without = smallStep(graph, 17, {"w"}, still);
  ASSERT_TRUE(with.has_value()) << with.error().message;
  ASSERT_TRUE(without.has_value()) << without.error().message;
  EXPECT_EQ(with->values.at("c"), without->values.at("c"));
  EXPECT_EQ(with->gradients.at("w"), without->gradients.at("w"));
}

}  // namespace
}  // namespace stepscope::testing
