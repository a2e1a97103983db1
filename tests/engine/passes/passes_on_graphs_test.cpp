// Passes on small graphs: what they make of a pattern, that the numbers stay, and which condition a near miss names.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Ints;
using testing::Sketch;

TEST(FoldTransposes, AttentionMovesNoHeads) {
  Sketch s;
  const ValueId q = s.input("q", {2, 5, 3, 4}), k = s.input("k", {2, 6, 3, 4}), v = s.input("v", {2, 6, 3, 4});
  const ValueId scores = s.op("MatMul", {s.op("Transpose", {q}, {{"perm", Ints{0, 2, 1, 3}}}),
                                         s.op("Transpose", {k}, {{"perm", Ints{0, 2, 3, 1}}})});
  const ValueId context = s.op("MatMul", {scores, s.op("Transpose", {v}, {{"perm", Ints{0, 2, 1, 3}}})});
  s.finish({s.op("Transpose", {context}, {{"perm", Ints{0, 2, 1, 3}}})});
  const PassResult result = s.apply("fold_transposes");
  EXPECT_EQ(result.matches, 4u);
  EXPECT_EQ(s.count("Transpose"), 0u);
  EXPECT_EQ(s.count("Product"), 2u);
}

TEST(FoldTransposes, WeightsAreReadAsTheyLie) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}), w = s.input("w", {5, 4});
  s.finish({s.op("Gemm", {x, s.op("Transpose", {w}, {{"perm", Ints{1, 0}}})})});
  EXPECT_EQ(s.apply("fold_transposes").matches, 1u);
  EXPECT_EQ(s.graph.order().size(), 1u);
}

TEST(FoldTransposes, LeavesWhatOthersReadAndNamesWhatHasNoNeighbours) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4, 5}), w = s.input("w", {3, 6});
  const ValueId moved =
      s.op("Transpose", {x}, {{"perm", Ints{2, 1, 0}}});  // [5, 4, 3]: its rows and columns are both strided
  s.finish({s.op("MatMul", {moved, w})});
  const PassResult result = s.apply("fold_transposes");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_NE(result.nearMisses[0].condition.find("no neighbouring elements"), std::string::npos);
}

TEST(FoldTransposes, LeavesOneThatMakesRowsOfManyBatchesOneMatrix) {
  Sketch s;
  const ValueId x = s.input("x", {2, 6, 4, 5}), w = s.input("w", {6, 7});
  s.finish({s.op("MatMul", {s.op("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}}), w})});
  const PassResult result = s.apply("fold_transposes");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_NE(result.nearMisses[0].condition.find("2 products of few rows instead of 1"), std::string::npos)
      << result.nearMisses[0].condition;
}

Attributes to(DType type) { return {{"to", static_cast<std::int64_t>(type)}}; }

// What mixed precision makes of a weight that is stored transposed, and of its gradient.
TEST(PropagateCasts, LetProductsReadAndWriteTransposed) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}), w = s.input("w", {5, 4});
  const Attributes turned{{"perm", Ints{1, 0}}};
  const ValueId low = s.op("Cast", {s.op("Transpose", {w}, turned)}, to(DType::kBF16));
  const ValueId y = s.op("MatMul", {s.op("Cast", {x}, to(DType::kBF16)), low});
  s.finish({s.op("Transpose", {s.op("Cast", {y}, to(DType::kF32))}, turned)});
  EXPECT_EQ(s.apply("propagate_casts").matches, 2u);
  EXPECT_EQ(s.graph.value(s.graph.outputs()[0]).type.text(), "float32[5, 3]");
  EXPECT_EQ(s.apply("fold_transposes").matches, 2u);
  EXPECT_EQ(s.count("Transpose"), 0u);
  EXPECT_EQ(s.apply("propagate_casts").matches, 0u);
}

TEST(PropagateCasts, LeavesWhatNoProductIsAt) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}), w = s.input("w", {4, 5});
  const Attributes turned{{"perm", Ints{1, 0}}};
  const ValueId alone = s.op("Relu", {s.op("Cast", {s.op("Transpose", {x}, turned)}, to(DType::kF16))});
  const ValueId y = s.op("MatMul", {s.op("Cast", {x}, to(DType::kF16)), s.op("Cast", {w}, to(DType::kF16))});
  const ValueId back = s.op("Transpose", {s.op("Cast", {y}, to(DType::kF32))}, turned);
  s.finish({alone, back, s.op("Relu", {y})});
  const PassResult result = s.apply("propagate_casts");
  EXPECT_EQ(result.matches, 0u);
  const auto told = [&](std::string_view text) {
    return std::ranges::count_if(result.nearMisses,
                                 [&](const NearMiss& miss) { return miss.condition.find(text) != std::string::npos; });
  };
  EXPECT_EQ(told("has other readers"), 1);
  EXPECT_EQ(told("reads float16"), 3) << "every cast that stays says between what it stands";
  EXPECT_EQ(told("makes float16, Transpose"), 1);
  EXPECT_EQ(result.nearMisses.size(), 5u);
}

TEST(FoldScales, BeforeAndAfterAProduct) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}), w = s.input("w", {4, 5}), v = s.input("v", {5, 2});
  const ValueId scores = s.op("Div", {s.op("MatMul", {x, w}), s.constant(8)});
  s.finish({s.op("MatMul", {s.op("Mul", {s.op("Relu", {scores}), s.constant(0.5)}), v})});
  EXPECT_EQ(s.apply("fold_scales").matches, 2u);
  EXPECT_EQ(s.count("Div") + s.count("Mul"), 0u);
}

TEST(FuseEpilogue, BiasResidualAndRelu) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4}), w = s.input("w", {4, 5}), bias = s.input("bias", {5}),
                residual = s.input("r", {2, 3, 5});
  const ValueId sum = s.op("Add", {s.op("Add", {bias, s.op("MatMul", {x, w})}), residual});
  s.finish({s.op("Relu", {sum})});
  s.apply("fuse_epilogue");
  ASSERT_EQ(s.graph.order().size(), 1u);
  EXPECT_EQ(s.only("Product").inputs.size(), 4u);
  EXPECT_EQ(s.only("Product").attrs.text("activation", ""), "Relu");
}

TEST(FuseEpilogue, AProductThatIsReadAsItIsStays) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}), w = s.input("w", {4, 5}), bias = s.input("bias", {5});
  const ValueId product = s.op("MatMul", {x, w});
  s.finish({s.op("Add", {product, bias}), product});
  const PassResult result = s.apply("fuse_epilogue");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "the product is read as it is too");
}

TEST(MergeSlices, HalvesAndPlacesAreSplits) {
  Sketch s;
  const ValueId x = s.input("x", {2, 6}), packed = s.input("packed", {3, 4});
  const auto part = [&](ValueId of, Ints from, Ints to) {
    return s.op("Slice", {of, s.ints(from), s.ints(to), s.ints({-1})});
  };
  const ValueId low = part(x, {0}, {4}), high = part(x, {-2}, {9223372036854775807});
  const auto place = [&](std::int64_t i) {
    const ValueId index = s.graph.addConstant("i", Tensor::scalar(DType::kI64, static_cast<double>(i)));
    return s.op("Gather", {packed, index}, {{"axis", std::int64_t{0}}});
  };
  // A part of a part too: it is read from the part that the Split makes.
  s.finish({s.op("Neg", {high}), part(low, {0}, {1}), part(low, {1}, {4}), place(2), s.op("Relu", {place(0)}), place(-2)});
  EXPECT_EQ(s.apply("merge_slices").matches, 3u);
  EXPECT_EQ(s.count("Split"), 3u);
  EXPECT_EQ(s.count("Squeeze"), 3u);
  EXPECT_EQ(s.count("Slice") + s.count("Gather"), 0u);
  EXPECT_EQ(s.apply("merge_slices").matches, 0u);
}

TEST(MergeSlices, GapsAndOverlapsAreNearMisses) {
  Sketch s;
  const ValueId x = s.input("x", {2, 6}), y = s.input("y", {5});
  const auto part = [&](ValueId of, std::int64_t from, std::int64_t to) {
    return s.op("Slice", {of, s.ints({from}), s.ints({to}), s.ints({-1})});
  };
  s.finish({part(x, 0, 3), part(x, 4, 6), part(y, 0, 3), part(y, 2, 5)});
  const PassResult result = s.apply("merge_slices");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 2u);
  EXPECT_NE(result.nearMisses[0].condition.find("do not cover axis 1 of 'x'"), std::string::npos);
  EXPECT_EQ(result.nearMisses[1].condition, "they overlap");
}

TEST(FuseCrossEntropy, LogarithmsAreNotStored) {
  for (const char* loss : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    Sketch s;
    const ValueId x = s.input("x", {4, 5});
    const ValueId labels = s.graph.addConstant("labels", Tensor::ints(Ints{1, 0, -100, 4}));
    s.finish({s.op(loss, {s.op("LogSoftmax", {x}, {{"axis", std::int64_t{-1}}}), labels},
                   {{"ignore_index", std::int64_t{-100}}, {"reduction", std::string("sum")}})});
    EXPECT_EQ(s.apply("fuse_cross_entropy").matches, 1u) << loss;
    EXPECT_EQ(s.graph.order().size(), 1u);
    EXPECT_EQ(s.count("SoftmaxCrossEntropyLoss"), 1u);
  }
}

TEST(FuseCrossEntropy, NearMisses) {
  Sketch s;
  const ValueId x = s.input("x", {4, 5}), logs = s.op("LogSoftmax", {x}, {{"axis", std::int64_t{1}}}),
                columns = s.op("LogSoftmax", {s.op("Relu", {x})}, {{"axis", std::int64_t{0}}});
  const ValueId labels = s.graph.addConstant("labels", Tensor::ints(Ints{1, 0, 3, 4}));
  s.finish({s.op("NegativeLogLikelihoodLoss", {logs, labels}), logs, s.op("NegativeLogLikelihoodLoss", {columns, labels})});
  const PassResult result = s.apply("fuse_cross_entropy");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 2u);
  EXPECT_EQ(result.nearMisses[0].condition, "the logarithms are read elsewhere too");
  EXPECT_EQ(result.nearMisses[1].condition, "LogSoftmax runs along another axis than the classes");
}

TEST(FuseGelu, BothFormsHoweverTheFactorsAreGrouped) {
  Sketch s;
  const ValueId x = s.input("x", {4, 7});
  const ValueId one = s.constant(1), half = s.constant(0.5);
  const auto erf = [&](ValueId of) {
    return s.op("Add", {s.op("Erf", {s.op("Div", {of, s.constant(std::sqrt(2.0))})}), one});
  };
  const ValueId first = s.op("Mul", {s.op("Mul", {x, erf(x)}), half});
  const ValueId second = s.op("Mul", {s.op("Mul", {half, first}), erf(first)});
  const ValueId cube = s.op("Mul", {s.constant(0.044715), s.op("Pow", {second, s.constant(3)})});
  const ValueId t = s.op("Tanh", {s.op("Mul", {s.constant(0.7978845608), s.op("Add", {second, cube})})});
  s.finish({s.op("Mul", {s.op("Mul", {half, second}), s.op("Add", {one, t})})});
  EXPECT_EQ(s.apply("fuse_gelu").matches, 3u);
  EXPECT_EQ(s.count("Gelu"), 3u);
  EXPECT_EQ(s.graph.order().size(), 3u);
}

TEST(FuseGelu, AnotherFactorIsANearMiss) {
  Sketch s;
  const ValueId x = s.input("x", {4});
  const ValueId gate = s.op("Add", {s.op("Erf", {s.op("Mul", {x, s.constant(std::sqrt(0.5))})}), s.constant(2)});
  s.finish({s.op("Mul", {s.op("Mul", {x, gate}), s.constant(0.5)})});
  const PassResult result = s.apply("fuse_gelu");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "what is added to erf or tanh is not 1");
}

TEST(FuseSwish, WithAFactorAndWithout) {
  Sketch s;
  const ValueId x = s.input("x", {4, 7});
  const ValueId silu = s.op("Mul", {x, s.op("Sigmoid", {x})});
  s.finish({s.op("Mul", {s.op("Sigmoid", {s.op("Mul", {s.constant(1.702), silu})}), silu})});
  EXPECT_EQ(s.apply("fuse_swish").matches, 2u);
  ASSERT_EQ(s.graph.order().size(), 2u);
  EXPECT_EQ(s.count("QuickGelu"), 2u);
  const Node &first = s.graph.node(s.graph.order()[0]), &second = s.graph.node(s.graph.order()[1]);
  EXPECT_EQ(first.attrs.real("alpha", 0), 1.0f);
  EXPECT_EQ(second.attrs.real("alpha", 0), 1.702f);
  EXPECT_EQ(second.inputs, std::vector<ValueId>{first.output(0)});
}

TEST(FuseSwish, ASigmoidThatIsReadElsewhereIsANearMissAndAnotherGateIsNone) {
  Sketch s;
  const ValueId x = s.input("x", {4}), other = s.input("other", {4});
  const ValueId gate = s.op("Sigmoid", {x});
  s.finish({s.op("Mul", {x, gate}), gate, s.op("Mul", {x, s.op("Sigmoid", {other})})});
  const PassResult result = s.apply("fuse_swish");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_NE(result.nearMisses[0].condition.find("is read elsewhere too"), std::string::npos);
}

TEST(FuseMaskedSoftmax, AddedAndFilledMasks) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4, 4}), mask = s.input("mask", {2, 1, 1, 4}), other = s.input("other", {4, 4});
  const ValueId first = s.op("Softmax", {s.op("Add", {mask, x})}, {{"axis", std::int64_t{3}}});
  const ValueId causal = s.op("GreaterOrEqual", {other, s.constant(0)});
  s.finish({s.op("Softmax", {s.op("Where", {causal, first, s.constant(-1e9)})})});
  EXPECT_EQ(s.apply("fuse_masked_softmax").matches, 2u);
  EXPECT_EQ(s.count("MaskedSoftmax"), 2u);
  EXPECT_EQ(s.graph.order().size(), 3u);
}

TEST(FuseMaskedSoftmax, AnotherAxisIsANearMiss) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}), mask = s.input("mask", {4});
  s.finish({s.op("Softmax", {s.op("Add", {x, mask})}, {{"axis", std::int64_t{0}}})});
  const PassResult result = s.apply("fuse_masked_softmax");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "softmax runs along another axis than the last");
}

TEST(FuseNormalization, LayerAndRootMeanSquare) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 8}), w = s.input("w", {8}), b = s.input("b", {8});
  const auto mean = [&](ValueId of) { return s.op("ReduceMean", {of, s.ints({-1})}, {{"keepdims", std::int64_t{1}}}); };
  const auto root = [&](ValueId of) {
    return s.op("Sqrt", {s.op("Add", {mean(s.op("Pow", {of, s.constant(2)})), s.constant(1e-5)})});
  };
  const ValueId centred = s.op("Sub", {x, mean(x)});
  const ValueId layer = s.op("Add", {s.op("Mul", {s.op("Div", {centred, root(centred)}), w}), b});
  s.finish({s.op("Mul", {w, s.op("Mul", {layer, s.op("Reciprocal", {root(layer)})})})});
  EXPECT_EQ(s.apply("fuse_normalization").matches, 2u);
  EXPECT_EQ(s.graph.order().size(), 2u);
  EXPECT_EQ(s.count("LayerNormalization"), 1u);
  EXPECT_EQ(s.count("RMSNormalization"), 1u);
}

TEST(FuseNormalization, AScaleOfOtherExtentsIsANearMiss) {
  Sketch s;
  const ValueId x = s.input("x", {3, 8}), w = s.input("w", {3, 1});
  const ValueId root =
      s.op("Sqrt", {s.op("Add", {s.op("ReduceMean", {s.op("Mul", {x, x}), s.ints({1})}), s.constant(1e-5)})});
  s.finish({s.op("Mul", {s.op("Div", {x, root}), w})});
  const PassResult result = s.apply("fuse_normalization");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "its scale is no row of the last axis");
}

}  // namespace
}  // namespace stepscope
