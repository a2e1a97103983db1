// Quirks of reference/ort_graph.md §14 about losses (the others and those left out: ort_quirks_test.cpp).
#include <cmath>

#include "tests/engine/autodiff/slopes.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

std::string tensor(const char* kind, const std::string& name, int type, const std::vector<int>& dims) {
  std::string text =
      std::string(kind) + " { name: \"" + name + "\" type { tensor_type { elem_type: " + std::to_string(type) + " shape {";
  for (const int dim : dims) text += " dim { dim_value: " + std::to_string(dim) + " }";
  return text + " } } } } ";
}

TEST(OrtQuirks, Q15_CrossEntropyOfAGraphInputBuilds) {
  // Nothing trained lies before the logits: the loss is a number, its gradient goes elsewhere.
  const std::string graph = tensor("input", "x", 1, {2, 3}) + tensor("input", "t", 7, {2}) + floats("w", {2}, {3, -1}) +
                            node("Cast", "x", "logits", attribute("to", 1)) +
                            node("SoftmaxCrossEntropyLoss", "logits t", "ce") + node("Mul", "w w", "q") +
                            node("ReduceSum", "q", "r", attribute("keepdims", 0)) + node("Add", "ce r", "loss");
  const auto step = smallStep(graph, 17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_TRUE(std::isfinite(step->loss));
  EXPECT_EQ(step->gradients.at("w"), (Numbers{6, -2}));
}

TEST(OrtQuirks, Q16_LogSoftmaxWithASecondReaderOrAnotherAxisKeepsBothGradients) {
  const Numbers w{0.3, -1.2, 0.8, 1.7, 0.1, -0.4};
  const std::string fixed = ints("t", {2}, {2, 0}) + doubles("k", {2, 3}, {1, -2, 0.5, 3, 0.25, -1}) +
                            node("StopGradient", "k", "c", "domain: \"stepscope\"");
  expectSlopes(
      [&](const Numbers& values) {
        return fixed + doubles("w", {2, 3}, values) + node("LogSoftmax", "w", "p", attribute("axis", 1)) +
               node("NegativeLogLikelihoodLoss", "p t", "n") + node("Mul", "p c", "pc") +
               node("ReduceSum", "pc", "r", attribute("keepdims", 0)) + node("Add", "n r", "loss");
      },
      "w", w);
  expectSlopes(  // normalised over the axis that is not the classes'
      [&](const Numbers& values) {
        return fixed + doubles("w", {2, 3}, values) + node("LogSoftmax", "w", "p", attribute("axis", 0)) +
               node("NegativeLogLikelihoodLoss", "p t", "loss");
      },
      "w", w);
}

TEST(OrtQuirks, Q25_CrossEntropyTakesClassWeightsAndScoresOfRankThree) {
  // scores [1, 3, 2]: the classes are axis 1, the labels [1, 2] have the rest of the axes.
  const Numbers scores{0.5, -1, 2, 0.25, -0.75, 1.5};
  const double weight[3] = {0.5, 2, 4};
  const int label[2] = {1, 2};
  const auto step =
      smallStep(floats("s", {1, 3, 2}, std::vector<float>(scores.begin(), scores.end())) + ints("t", {1, 2}, {1, 2}) +
                    floats("k", {3}, {0.5f, 2, 4}) + node("SoftmaxCrossEntropyLoss", "s t k", "loss"),
                17, {"s"}, {1, {{"freeze", "^k$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  double loss = 0;
  for (int d = 0; d < 2; ++d) {
    double total = 0;
    for (int c = 0; c < 3; ++c) total += std::exp(scores[static_cast<std::size_t>(c * 2 + d)]);
    for (int c = 0; c < 3; ++c) {
      const std::size_t at = static_cast<std::size_t>(c * 2 + d);
      const double p = std::exp(scores[at]) / total;
      if (c == label[d]) loss -= std::log(p) * weight[c] / (weight[1] + weight[2]);
      EXPECT_NEAR(step->gradients.at("s")[at], weight[label[d]] / (weight[1] + weight[2]) * (p - (c == label[d])), 1e-6)
          << at;
    }
  }
  EXPECT_NEAR(step->loss, loss, 1e-6);
  // Attached to an output of rank 3, a language model's logits: the labels have its first two axes.
  const auto attached = smallStep(tensor("input", "x", 1, {2, 3, 4}) + floats("w", {4, 5}, std::vector<float>(20, 0.0f)) +
                                      node("MatMul", "x w", "logits") + tensor("output", "logits", 1, {2, 3, 5}),
                                  17, {"w"}, {1, {{"loss-fn", "cross_entropy"}}, {}});
  ASSERT_TRUE(attached.has_value()) << attached.error().message;
  EXPECT_NEAR(attached->loss, std::log(5.0), 1e-6);
}

TEST(OrtQuirks, Q26_BinaryCrossEntropyOfLargeLogitsIsFinite) {
  const auto step =
      smallStep(tensor("input", "x", 1, {2}) + floats("w", {2}, {100, -100}) + floats("none", {}, {0}) +
                    node("Mul", "x none", "zero") + node("Add", "w zero", "logits") + tensor("output", "logits", 1, {2}),
                17, {"w"}, {1, {{"loss-fn", "bce_with_logits"}, {"freeze", "none"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  const Numbers& g =
      step->gradients.at("w");  // (sigmoid(w) - t) / 2 with sigmoid 1 and 0, so loss = mean(w t-terms) = 100 (g0 - g1)
  ASSERT_TRUE(std::isfinite(step->loss) && std::isfinite(g[0]) && std::isfinite(g[1]));
  EXPECT_NEAR(step->loss, 100 * (g[0] - g[1]), 1e-3 * (1 + std::abs(step->loss)));
}

}  // namespace
}  // namespace stepscope::testing
