// Operators of com.microsoft that are rewritten into public ones: value and gradient of one step.
#include <gtest/gtest.h>

#include <cmath>

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

// Loss and gradient of w are those of the same written with public operators.
void expectTheSame(const std::string& shared, const std::string& fused, const std::string& written, int opset = 17) {
  const SmallStepOptions options{1, {{"train", "^w$"}}, {}};
  const std::string loss = node("Mul", "y y", "q") + sum("q");
  const auto a = smallStep(shared + fused + loss, opset, {"w"}, options),
             b = smallStep(shared + written + loss, opset, {"w"}, options);
  ASSERT_TRUE(a.has_value()) << a.error().message;
  ASSERT_TRUE(b.has_value()) << b.error().message;
  EXPECT_NEAR(a->loss, b->loss, 1e-5 * (1 + std::abs(b->loss)));
  for (std::size_t i = 0; i < b->gradients.at("w").size(); ++i)
    EXPECT_NEAR(a->gradients.at("w")[i], b->gradients.at("w")[i], 1e-4) << i;
}

std::vector<float> wave(std::size_t count, float phase = 0) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(std::sin(1.7f * static_cast<float>(i) + phase));
  return values;
}

TEST(RaiseMicrosoft, FusedGemmAndFusedConvApplyTheirActivation) {
  const std::string matrices =
      floats("x", {2, 3}, wave(6)) + floats("w", {3, 2}, wave(6, 1)) + floats("b", {2}, {0.1f, -0.2f});
  expectTheSame(matrices,
                microsoft("FusedGemm", "x w b", "y",
                          textAttribute("activation", "LeakyRelu") + realAttribute("activation_alpha", 0.3)),
                node("Gemm", "x w b", "g") + node("LeakyRelu", "g", "y", realAttribute("alpha", 0.3)));
  const std::string images = floats("x", {1, 1, 3, 3}, wave(9)) + floats("w", {1, 1, 2, 2}, wave(4, 1)) +
                             floats("b", {1}, {0.1f}) + floats("z", {1, 1, 2, 2}, wave(4, 2));
  expectTheSame(images, microsoft("FusedConv", "x w b z", "y", textAttribute("activation", "Relu")),
                node("Conv", "x w b", "c") + node("Add", "c z", "a") + node("Relu", "a", "y"));
  const std::string clip = "attribute { name: \"activation_params\" type: FLOATS floats: -0.5 floats: 0.25 } ";
  expectTheSame(images + floats("low", {}, {-0.5f}) + floats("high", {}, {0.25f}),
                microsoft("FusedConv", "x w b", "y", textAttribute("activation", "Clip") + clip),
                node("Conv", "x w b", "c") + node("Clip", "c low high", "y"));
  const auto unknown =
      smallStep(images + microsoft("FusedConv", "x w b", "y", textAttribute("activation", "Swirl")) + sum("y"), 17, {"w"});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("activation 'Swirl'"), std::string::npos) << unknown.error().message;
}

TEST(RaiseMicrosoft, NhwcConvHasItsChannelsLast) {
  expectTheSame(floats("x", {1, 3, 3, 2}, wave(18)) + floats("w", {2, 2, 2, 2}, wave(16, 1)),
                microsoft("NhwcConv", "x w", "y", attribute("kernel_shape", std::vector<std::int64_t>{2, 2})),
                node("Transpose", "x", "t", attribute("perm", std::vector<std::int64_t>{0, 3, 1, 2})) +
                    node("Conv", "t w", "c") +
                    node("Transpose", "c", "y", attribute("perm", std::vector<std::int64_t>{0, 2, 3, 1})));
}

TEST(RaiseMicrosoft, EmbedLayerNormalizationSumsThreeTables) {
  const std::string shared = ints("ids", {1, 2}, {2, 0}) + ints("segments", {1, 2}, {0, 1}) + floats("w", {3, 4}, wave(12)) +
                             floats("positions", {5, 4}, wave(20, 1)) + floats("table", {2, 4}, wave(8, 2)) +
                             floats("gamma", {4}, {1, 2, 0.5f, 1}) + floats("beta", {4}, {0, 0.1f, 0, 0}) +
                             ints("from", {1}, {0}) + ints("to", {1}, {2});
  expectTheSame(shared,
                microsoft("EmbedLayerNormalization", "ids segments w positions table gamma beta", "y _",
                          realAttribute("epsilon", 0.001)),
                node("Gather", "w ids", "a") + node("Slice", "positions from to from", "p") +
                    node("Gather", "table segments", "s") + node("Add", "a p", "ap") + node("Add", "ap s", "aps") +
                    node("LayerNormalization", "aps gamma beta", "y", realAttribute("epsilon", 0.001)));
}

// One head of two: scores q k / sqrt(2), plus -10000 where the mask is 0.
TEST(RaiseMicrosoft, AttentionProjectsMasksAndAttends) {
  const std::string mask =
      "initializer { name: \"mask\" data_type: 6 dims: 1 dims: 3 int32_data: 1 int32_data: 1 int32_data: 0 } "
      "value_info { name: \"mask\" type { tensor_type { elem_type: 6 shape { dim { dim_value: 1 } dim { dim_value: 3 } } } "
      "} } ";
  const std::string shared = floats("x", {1, 3, 2}, wave(6)) + floats("w", {2, 6}, wave(12, 1)) +
                             floats("b", {6}, wave(6, 2)) + mask + floats("added", {1, 1, 3}, {0, 0, -10000}) +
                             floats("root", {}, {0.70710678f});
  const std::string attended = node("Transpose", "k", "kt", attribute("perm", std::vector<std::int64_t>{0, 2, 1})) +
                               node("MatMul", "q_ kt", "s") + node("Mul", "s root", "r") + node("Add", "r added", "m") +
                               node("Softmax", "m", "p") + node("MatMul", "p v", "y");
  expectTheSame(shared, microsoft("Attention", "x w b mask", "y", attribute("num_heads", 1)),
                node("MatMul", "x w", "h") + node("Add", "h b", "hb") +
                    node("Split", "hb", "q_ k v", attribute("axis", -1) + attribute("num_outputs", 3)) + attended,
                18);
  expectTheSame(shared,
                node("MatMul", "x w", "h") +
                    node("Split", "h", "q_ k v", attribute("axis", -1) + attribute("num_outputs", 3)) +
                    microsoft("MultiHeadAttention", "q_ k v b mask", "y", attribute("num_heads", 1)),
                node("MatMul", "x w", "h") + node("Add", "h b", "hb") +
                    node("Split", "hb", "q_ k v", attribute("axis", -1) + attribute("num_outputs", 3)) + attended,
                18);
}

// What ONNX Runtime's training graphs have in the place of LSTM and GRU; W, R and B hold one hidden unit.
std::string cellOperands(std::int64_t gates) {
  const auto g = static_cast<std::size_t>(gates);
  return floats("x", {3, 2, 2}, wave(12)) + floats("w", {1, gates, 2}, wave(2 * g, 1)) +
         floats("r", {1, gates, 1}, wave(g, 2)) + floats("b", {1, 2 * gates}, wave(2 * g, 3));
}

TEST(RaiseMicrosoft, LstmTrainingAndGruTrainingComputeWhatLstmAndGruDo) {
  const std::string hidden = attribute("hidden_size", 1);
  expectTheSame(cellOperands(4), microsoft("LSTMTraining", "x w r b", "y h c cells gates", hidden),
                node("LSTM", "x w r b", "y", hidden));
  expectTheSame(cellOperands(4), microsoft("LSTMTraining", "x w r b", "_ _ y", hidden),
                node("LSTM", "x w r b", "_ _ y", hidden));
  const std::string both = hidden + attribute("linear_before_reset", 1);
  expectTheSame(cellOperands(3), microsoft("GRUTraining", "x w r b", "y h gates", both), node("GRU", "x w r b", "y", both));
}

// The results behind ONNX's own follow from each other as the cell's formula says.
TEST(RaiseMicrosoft, LstmTrainingAndGruTrainingHandOutCellsAndGates) {
  const std::string hidden = attribute("hidden_size", 1);
  const auto read = [](const std::string& name) { return node("Identity", name, name + "_read"); };
  constexpr std::size_t kSteps = 3, kBatch = 2;
  const auto lstm = smallStep(cellOperands(4) + microsoft("LSTMTraining", "x w r b", "y _ _ cells gates", hidden) +
                                  read("cells") + read("gates") + sum("y"),
                              17, {"w"}, {1, {{"train", "^w$"}}, {"y", "cells_read", "gates_read"}});
  ASSERT_TRUE(lstm.has_value()) << lstm.error().message;
  const auto& y = lstm->values.at("y");
  const auto &cells = lstm->values.at("cells_read"), &gates = lstm->values.at("gates_read");
  ASSERT_EQ(cells.size(), kSteps * kBatch);
  ASSERT_EQ(gates.size(), kSteps * kBatch * 4);
  for (std::size_t at = 0; at < kSteps * kBatch; ++at) {
    const double *i = &gates[4 * at], *o = i + 1, *f = i + 2, *c = i + 3, before = at < kBatch ? 0 : cells[at - kBatch];
    EXPECT_NEAR(cells[at], *f * before + *i * *c, 1e-5) << at;
    EXPECT_NEAR(y[at], *o * std::tanh(cells[at]), 1e-5) << at;
  }
  const auto gru =
      smallStep(cellOperands(3) + microsoft("GRUTraining", "x w r b", "y _ gates", hidden) + read("gates") + sum("y"), 17,
                {"w"}, {1, {{"train", "^w$"}}, {"y", "gates_read"}});
  ASSERT_TRUE(gru.has_value()) << gru.error().message;
  for (std::size_t at = 0; at < kSteps * kBatch; ++at) {
    const double *z = &gru->values.at("gates_read")[3 * at], *h = z + 2;
    const double before = at < kBatch ? 0 : gru->values.at("y")[at - kBatch];
    EXPECT_NEAR(gru->values.at("y")[at], (1 - *z) * *h + *z * before, 1e-5) << at;
  }
}

}  // namespace
}  // namespace stepscope::testing
