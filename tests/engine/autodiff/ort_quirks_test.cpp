// The quirks of reference/ort_graph.md §14, each with a test of its number: where the closest engine is known to go wrong,
// ours is right. Losses are in ort_quirks_loss_test.cpp, indexing and slices in ort_quirks_indexing_test.cpp; Q27
// (checkpoints) is in tests/app/cli/resume_test.cpp, Q28 (500 functions) in tests/engine/onnx/inliner_test.cpp.
//
// Q11, Q12, Q13 (padding elimination) are in tests/engine/passes/eliminate_padding_test.cpp, Q18 (quantisation) in
// small_fusions_test.cpp there.
//
// Without a test, because nothing of ours does what the quirk is about:
//   Q14            ScaledSum: no such fusion; divisions by constants go into the factor of a product (fold_scales).
//   Q19, Q20, Q22  recompute: its own tests count, save and stop.
#include <cmath>

#include "engine/autodiff/gradient.h"
#include "tests/engine/autodiff/slopes.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

void expectNumbers(const Result<SmallStep>& step, const std::string& name, const Numbers& expected,
                   double tolerance = 1e-5) {
  ASSERT_TRUE(step.has_value()) << step.error().message;
  const Numbers& found = step->gradients.at(name);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << name << "[" << i << "]";
}

TEST(OrtQuirks, Q2_PowReducesTheGradientToTheShapeOfABroadcastBase) {
  // y[i, j] = w[i] ^ e[j]: dw[i] = sum of e[j] w[i]^(e[j] - 1).
  const auto step =
      smallStep(floats("w", {2, 1}, {2, 3}) + floats("e", {1, 3}, {1, 2, 3}) + node("Pow", "w e", "y") + sumOf("y"), 17,
                {"w"}, {1, {{"freeze", "^e$"}}, {}});
  expectNumbers(step, "w", {1 + 4 + 12, 1 + 6 + 27}, 1e-4);
}

TEST(OrtQuirks, Q4_TiesShareEvenlyWhereValuesCompeteAndGoToTheFirstWhereAnIndexIsPicked) {
  const std::string c = floats("c", {1}, {6});
  const SmallStepOptions frozen{1, {{"freeze", "^c$"}}, {}};
  const auto scaled = [&](const std::string& y) { return node("Mul", y + " c", "z") + sumOf("z"); };
  for (const char* reduce : {"ReduceMax", "ReduceMin"}) {
    const float tied = std::string(reduce) == "ReduceMax" ? 5.0f : -5.0f;
    expectNumbers(
        smallStep(floats("w", {4}, {tied, 1, tied, tied}) + c + node(reduce, "w", "y") + scaled("y"), 17, {"w"}, frozen),
        "w", {2, 0, 2, 2});
  }
  for (const char* op : {"Max", "Min"}) {
    const auto step = smallStep(floats("a", {2}, {4, 1}) + floats("b", {2}, {4, 9}) + c + node(op, "a b", "y") + scaled("y"),
                                17, {"a", "b"}, frozen);
    const bool max = std::string(op) == "Max";
    expectNumbers(step, "a", {3, max ? 0.0 : 6.0});
    expectNumbers(step, "b", {3, max ? 6.0 : 0.0});
  }
  const std::string image = floats("w", {1, 1, 4}, {7, 7, 1, 7}) + c;
  expectNumbers(smallStep(image + node("GlobalMaxPool", "w", "y") + scaled("y"), 17, {"w"}, frozen), "w", {6, 0, 0, 0});
  expectNumbers(
      smallStep(image + node("MaxPool", "w", "y", attribute("kernel_shape", std::vector<std::int64_t>{4})) + scaled("y"), 17,
                {"w"}, frozen),
      "w", {6, 0, 0, 0});
  expectNumbers(
      smallStep(floats("w", {4}, {1, 7, 7, 7}) + c + ints("k", {1}, {1}) + node("TopK", "w k", "y i") + scaled("y"), 17,
                {"w"}, frozen),
      "w", {0, 6, 0, 0});
}

TEST(OrtQuirks, Q5_GeluOfFormTanhHasTheSlopeOfThatForm) {
  const Numbers x{-2.1, -0.4, 0.3, 2.2};
  const auto graph = [](const char* form) {
    return [form](const Numbers& w) {
      return doubles("w", {4}, w) + node("Gelu", "w", "y", textAttribute("approximate", form)) + sumOf("y");
    };
  };
  expectSlopes(graph("tanh"), "w", x, 20);
  expectSlopes(graph("none"), "w", x, 20);
  const SmallStepOptions inDouble{11, {}, {}};
  const auto tanh = smallStep(graph("tanh")(x), 20, {"w"}, inDouble),
             exact = smallStep(graph("none")(x), 20, {"w"}, inDouble);
  ASSERT_TRUE(tanh && exact);
  EXPECT_GT(std::abs(tanh->gradients.at("w")[0] - exact->gradients.at("w")[0]), 1e-5) << "the two forms differ here";
}

TEST(OrtQuirks, Q6_SeedIsTypedLikeTheLoss) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    Graph graph;
    const ValueId w = graph.addValue("w", {ValueKind::kTensor, dtype, Shape{}}, ValueRole::kInput);
    graph.mutableInputs().push_back(w);
    const NodeId square = graph.addNode("square", "", "Mul", {w, w}, {"loss"});
    const ValueId loss = graph.node(square).output(0);
    graph.mutableOutputs() = {loss};
    Inference inference(graph, builtInOperators(), {.foldElements = -1});
    ASSERT_TRUE(inference.run().has_value());
    const auto report = buildGradient(graph, inference, {loss, {w}});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(dtypeName(graph.value(graph.findValue("loss_grad")).type.dtype), dtypeName(dtype));
    EXPECT_EQ(dtypeName(graph.value(report->gradients[0]).type.dtype), dtypeName(dtype));
    EXPECT_TRUE(graph.verify().empty());
  }
  const auto step = smallStep(doubles("w", {2}, {0.1, 0.2}) + node("Mul", "w w", "q") + sumOf("q"), 17, {"w"}, {11, {}, {}});
  expectNumbers(step, "w", {0.2, 0.4}, 1e-15);  // a seed or a product in float would be off by 1e-9
}

TEST(OrtQuirks, Q8_LeakyReluOfNegativeAlphaLooksAtItsInput) {
  const auto step = smallStep(
      floats("w", {2}, {-2, 3}) + node("LeakyRelu", "w", "y", realAttribute("alpha", -0.5)) + sumOf("y"), 17, {"w"});
  expectNumbers(step, "w", {-0.5, 1});  // the result is positive in both places
}

TEST(OrtQuirks, Q17_FrozenBatchNormalizationStaysFrozen) {
  // One channel, mean 1, variance 4: y = (x - 1) / 2 * scale + b, a plain affine map.
  const std::string graph =
      floats("x", {2, 1}, {3, 7}) + floats("s", {1}, {5}) + floats("b", {1}, {1}) + floats("mean", {1}, {1}) +
      floats("var", {1}, {4}) +
      node("BatchNormalization", "x s b mean var", "y", realAttribute("epsilon", 0) + attribute("training_mode", 0)) +
      node("Mul", "y y", "q") + sumOf("q");
  const auto step = smallStep(graph, 17, {"x", "s", "b"});
  const double y0 = 6, y1 = 16;
  expectNumbers(step, "x", {2 * y0 * 2.5, 2 * y1 * 2.5}, 1e-3);  // no terms of the batch's own mean and variance
  expectNumbers(step, "s", {2 * y0 * 1 + 2 * y1 * 3}, 1e-3);
  expectNumbers(step, "b", {2 * y0 + 2 * y1}, 1e-3);
  EXPECT_EQ(step->state.at("mean"), Numbers{1});
  EXPECT_EQ(step->state.at("var"), Numbers{4});
}

TEST(OrtQuirks, Q21_DropoutHasOneMaskForwardsAndBackwards) {
  // y = 2 w where kept; the gradient is the mask of the very same draw.
  const std::string graph = floats("w", {64}, std::vector<float>(64, 1.0f)) + floats("half", {}, {0.5f}) +
                            "initializer { name: \"on\" data_type: 9 int32_data: 1 } " + node("Dropout", "w half on", "y") +
                            sumOf("y");
  const auto step = smallStep(graph, 17, {"w"}, {1, {{"freeze", "half"}}, {"y"}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("w"), step->values.at("y"));
  double kept = 0;
  for (const double y : step->values.at("y")) kept += y / 2;
  EXPECT_GT(kept, 16);
  EXPECT_LT(kept, 48);
}

TEST(OrtQuirks, Q23_AForwardOutputThatIsReadLaterIsNeverWrittenOver) {
  // y dies at Relu for the step, which would like to take its memory; who asked for y still finds it.
  const std::string graph = floats("w", {3}, {-1, 2, -3}) + floats("c", {3}, {2, 2, 2}) + node("Mul", "w c", "y") +
                            node("Relu", "y", "r") + node("Exp", "r", "e") + sumOf("e");
  const auto step = smallStep(graph, 17, {"w"}, {1, {{"freeze", "^c$"}}, {"y", "r"}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->values.at("y"), (Numbers{-2, 4, -6}));
  EXPECT_EQ(step->values.at("r"), (Numbers{0, 4, 0}));
}

TEST(OrtQuirks, Q24_TransposeWithoutPermReversesTheAxes) {
  const auto step = smallStep(floats("w", {2, 3, 1}, {1, 2, 3, 4, 5, 6}) + floats("c", {1, 3, 2}, {1, 2, 3, 4, 5, 6}) +
                                  node("Transpose", "w", "t") + node("Mul", "t c", "y") + sumOf("y"),
                              17, {"w"}, {1, {{"freeze", "^c$"}}, {}});
  expectNumbers(step, "w", {1, 3, 5, 2, 4, 6});
}

}  // namespace
}  // namespace stepscope::testing
