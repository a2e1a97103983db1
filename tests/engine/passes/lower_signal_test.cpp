// Transforms lowered to products: identities that hold for every transform, values and gradients. The numbers of single
// transforms are those of tests/golden (test_dft*, test_stft*, test_*window*).
#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

const std::vector<float> kSignal{0.3f, -1.2f, 0.7f, 2.0f, -0.4f, 1.1f};

double energy(const std::vector<float>& x) {
  return std::inner_product(x.begin(), x.end(), x.begin(), 0.0, std::plus<>(),
                            [](float a, float b) { return double{a} * double{b}; });
}

// loss = Σ y²
std::string squared(const std::string& y) { return node("ReduceSumSquare", y, "loss", attribute("keepdims", 0)); }

void expectGradient(const SmallStep& step, double factor) {
  const auto& gradient = step.gradients.at("w");
  ASSERT_EQ(gradient.size(), kSignal.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(gradient[i], factor * kSignal[i], 1e-4) << i;
}

TEST(LowerSignal, TransformKeepsTheEnergyAndItsGradient) {
  // Parseval: Σ |X|² = N · Σ x², here along an inner axis.
  const auto step =
      smallStep(floats("w", {1, 6, 1, 1}, kSignal) + node("DFT", "w", "y", attribute("axis", 1)) + squared("y"), 17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 6 * energy(kSignal), 1e-3);
  expectGradient(*step, 12);
}

TEST(LowerSignal, InverseUndoesTheTransform) {
  for (const int onesided : {0, 1}) {
    const std::string attributes = attribute("onesided", onesided);
    const auto step = smallStep(floats("w", {1, 6, 1}, kSignal) + ints("n", {}, {6}) + node("DFT", "w n", "y", attributes) +
                                    node("DFT", "y n", "z", attributes + attribute("inverse", 1)) + squared("z"),
                                17, {"w"});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_NEAR(step->loss, energy(kSignal), 1e-4) << onesided;
    expectGradient(*step, 2);
  }
}

TEST(LowerSignal, LengthCutsTheSignalOrAddsZeros) {
  for (const std::int64_t length : {4, 9}) {
    const auto step = smallStep(
        floats("w", {1, 6, 1}, kSignal) + ints("n", {}, {length}) + node("DFT", "w n", "y") + squared("y"), 17, {"w"});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    const std::vector<float> kept(kSignal.begin(), kSignal.begin() + std::min<std::int64_t>(length, 6));
    EXPECT_NEAR(step->loss, static_cast<double>(length) * energy(kept), 1e-3) << length;
    EXPECT_NEAR(step->gradients.at("w")[5], length == 4 ? 0 : 18 * kSignal[5], 1e-3);
  }
}

TEST(LowerSignal, FramesOfAShortTimeTransformOverlap) {
  // Frames of 4 every 2: the samples 2 and 3 stand in both.
  const auto step = smallStep(floats("w", {1, 6, 1}, kSignal) + ints("step", {}, {2}) + ints("length", {}, {4}) +
                                  node("STFT", "w step _ length", "y", attribute("onesided", 0)) + squared("y"),
                              17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->gradients.at("w")[0], 8 * kSignal[0], 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[2], 16 * kSignal[2], 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[5], 8 * kSignal[5], 1e-4);
}

TEST(LowerSignal, SaysWhatIsNotKnown) {
  const auto length =
      smallStep(floats("w", {1, 6, 1}, kSignal) + ints("n", {}, {-3}) + node("DFT", "w n", "y") + squared("y"), 17, {});
  ASSERT_FALSE(length.has_value());
  EXPECT_NE(length.error().message.find("transform length -3; expected 1 or more"), std::string::npos)
      << length.error().message;
  const auto parts = smallStep(floats("w", {1, 2, 3}, kSignal) + node("DFT", "w", "y") + squared("y"), 17, {});
  ASSERT_FALSE(parts.has_value());
  EXPECT_NE(parts.error().message.find("last extent of its signal is 3; expected 1 (real) or 2"), std::string::npos)
      << parts.error().message;
}

}  // namespace
}  // namespace stepscope::testing
