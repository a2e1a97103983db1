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

TEST(FusePointwise, ADiamondIsOneNodeAndAForkStays) {
  Sketch s;
  const ValueId x = s.input("x", {4, 6}), row = s.input("row", {6}), column = s.input("column", {4, 1});
  const ValueId shared = s.op("Mul", {x, row});
  const ValueId diamond = s.op("Add", {s.op("Exp", {shared}), s.op("Neg", {shared})});
  const ValueId kept = s.op("Sigmoid", {diamond});
  s.finish({kept, s.op("Sum", {s.op("Tanh", {kept}), x, row}), s.op("Sub", {s.op("Abs", {kept}), column})});
  const PassResult result = s.apply("fuse_pointwise");
  EXPECT_EQ(result.matches, 3u);
  EXPECT_EQ(s.graph.order().size(), 3u);
  EXPECT_EQ(s.count("Pointwise"), 3u);
}

TEST(FusePointwise, OperandsBroadcastAsTheyLike) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4}), row = s.input("row", {4}), rows = s.input("rows", {3, 4}),
                middle = s.input("middle", {1, 3, 1}), ends = s.input("ends", {2, 1, 4});
  s.finish({s.op("Sub", {s.op("Add", {s.op("Mul", {s.op("Add", {x, row}), rows}), middle}), ends})});
  EXPECT_EQ(s.apply("fuse_pointwise").matches, 1u);
  EXPECT_EQ(s.graph.order().size(), 1u);
  const std::uint64_t version = s.graph.version();
  EXPECT_EQ(s.apply("fuse_pointwise").matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
}

TEST(FusePointwise, GradientsAndTheGeluFamilyAreSteps) {
  Sketch s;
  const auto in = [&](std::string domain, std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const ValueId y = s.op(std::move(op), std::move(inputs), std::move(attrs));
    s.graph.mutableNode(s.graph.value(y).producer).domain = std::move(domain);
    return y;
  };
  const Attributes byTanh{{"approximate", std::string("tanh")}};
  const std::string microsoft = "com.microsoft", own(kInternalDomain);
  const ValueId x = s.input("x", {4, 6}), row = s.input("row", {6}), dy = s.input("dy", {4, 6});
  ValueId y = in(microsoft, "BiasGelu", {x, row});
  y = in(microsoft, "FastGelu", {s.op("Gelu", {s.op("Gelu", {y}, byTanh)}), row});
  y = in(microsoft, "QuickGelu", {in(microsoft, "QuickGelu", {y}, {{"alpha", 1.0F}})});
  y = s.op("Clip", {s.op("LeakyRelu", {y}, {{"alpha", 0.2F}}), s.constant(-0.7), s.constant(0.9)});
  y = in(own, "GeluGrad", {in(own, "GeluGrad", {dy, y}, byTanh), x});
  y = in(own, "ReluGrad", {y, dy});
  s.finish({s.op("Sum", {y, s.op("Cast", {s.op("IsNaN", {x})}, {{"to", std::int64_t{1}}}), row})});
  EXPECT_EQ(s.apply("fuse_pointwise").matches, 1u);
  EXPECT_EQ(s.graph.order().size(), 1u);
}

// What lies between the nodes of a chain is rounded as before.
TEST(FusePointwise, CastsAndLowTypesKeepTheirBits) {
  for (const std::int64_t low : {10, 16}) {
    Sketch s;
    const ValueId x = s.input("x", {5, 7}), row = s.input("row", {7});
    const auto to = [&](ValueId of, std::int64_t type) { return s.op("Cast", {of}, {{"to", type}}); };
    const ValueId narrow = s.op("Mul", {s.op("Exp", {to(x, low)}), to(row, low)});
    s.finish({s.op("Add", {to(s.op("Sigmoid", {narrow}), 1), x}), to(s.op("Tanh", {x}), low)});
    const std::vector<Tensor> before = s.run();
    EXPECT_EQ(s.apply("fuse_pointwise").matches, 2u);
    EXPECT_EQ(s.count("Pointwise"), 2u);
    EXPECT_EQ(s.count("Cast"), 1u) << "of the row, which is smaller";
    const std::vector<Tensor> after = s.run();
    for (std::size_t o = 0; o < before.size(); ++o) {
      ASSERT_EQ(after[o].dtype(), before[o].dtype());
      for (std::int64_t i = 0; i < before[o].elements(); ++i)
        EXPECT_EQ(elementAsDouble(after[o].view(), i), elementAsDouble(before[o].view(), i)) << low << ' ' << o << ' ' << i;
    }
  }
}

TEST(FusePointwise, CastsThatComputeNothingStay) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  s.finish({s.op("Cast", {s.op("Cast", {x}, {{"to", std::int64_t{1}}})}, {{"to", std::int64_t{1}}})});
  EXPECT_EQ(s.apply("fuse_pointwise").matches, 0u);
  EXPECT_EQ(s.count("Cast"), 2u);
}

TEST(FusePointwise, NearMisses) {
  Sketch s;
  const ValueId x = s.input("x", {1, 16, 4, 4}), w = s.input("w", {16, 16, 1, 1});
  const ValueId y = s.op("Cast", {s.op("Neg", {s.op("Conv", {x, w})})}, {{"to", std::int64_t{16}}});
  s.finish({s.op("Exp", {y})});
  PassResult result = s.apply("fuse_pointwise");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 2u) << "of Exp and of Cast";
  EXPECT_EQ(result.nearMisses[0].condition, "values of two types; beside convolutions those of a chain lie in one layout");
  Sketch l;
  ValueId z = l.input("z", {4});
  for (int i = 0; i < 50; ++i) z = l.op("Neg", {z});
  l.finish({z});
  result = l.apply("fuse_pointwise");
  EXPECT_EQ(result.matches, 2u) << "48 steps and 2";
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "the chain has 48 steps already");
}

// --- convolution networks

TEST(FuseReluGradient, MaskAndChoiceAreOneNode) {
  Sketch s;
  const ValueId y = s.input("y", {4, 5}), dy = s.input("dy", {4, 5}), row = s.input("row", {5});
  const ValueId mask = s.op("LessOrEqual", {y, s.constant(0)}), ones = s.op("LessOrEqual", {y, s.constant(1)});
  s.finish({s.op("Where", {mask, s.constant(0), dy}), s.op("Where", {mask, s.constant(0), row}),
            s.op("Where", {ones, s.constant(0), dy})});
  const PassResult result = s.apply("fuse_relu_gradient");
  EXPECT_EQ(result.matches, 1u);
  EXPECT_EQ(s.count("ReluGrad"), 1u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "y is float32[4, 5], dy is float32[5]; expected the same");
}

struct Norm {
  ValueId scale, bias, mean, variance;
};
Norm normOf(Sketch& s, std::int64_t channels) {
  const ValueId scale = s.input("scale", {channels}), bias = s.input("bias", {channels}), mean = s.input("mean", {channels}),
                raw = s.input("variance", {channels});
  return {scale, bias, mean, s.op("Abs", {raw})};
}
ValueId normalise(Sketch& s, ValueId x, const Norm& n) {
  return s.op("BatchNormalization", {x, n.scale, n.bias, n.mean, n.variance}, {{"training_mode", std::int64_t{0}}});
}

TEST(FuseBatchNorm, TakesAddendAndRelu) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4}), z = s.input("z", {2, 3, 4});
  const Norm n = normOf(s, 3);
  s.finish({s.op("Relu", {normalise(s, x, n)}), s.op("Relu", {s.op("Add", {z, normalise(s, x, n)})}),
            s.op("Relu", {s.op("Add", {normalise(s, z, n), normalise(s, x, n)})})});
  const PassResult result = s.apply("fuse_batch_norm");
  EXPECT_EQ(result.matches, 3u);
  EXPECT_EQ(s.count("FusedBatchNormalization"), 3u);
  EXPECT_EQ(s.count("BatchNormalization"), 1u);
  EXPECT_EQ(s.count("Relu") + s.count("Add"), 0u);
}

TEST(FuseBatchNorm, AResultThatIsReadAsItIsStays) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4}), channel = s.input("channel", {3, 1});
  const Norm n = normOf(s, 3);
  const ValueId read = normalise(s, x, n), added = normalise(s, x, n);
  s.finish({s.op("Relu", {read}), read, s.op("Relu", {s.op("Add", {added, channel})})});
  const PassResult result = s.apply("fuse_batch_norm");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 2u);
  EXPECT_EQ(result.nearMisses[0].condition, "its result is read without Relu too: an output of the graph");
  EXPECT_EQ(result.nearMisses[1].condition, "the addend 'channel' is float32[3, 1]; expected float32[2, 3, 4]");
}

TEST(FuseBatchNorm, TheGradientBehindReluKeepsWhatOthersRead) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4}), dy = s.input("dy", {2, 3, 4}), y = s.input("y", {2, 3, 4});
  const Norm n = normOf(s, 3);
  const auto own = [&](std::string op, std::vector<ValueId> inputs) {
    const ValueId out = s.op(std::move(op), std::move(inputs));
    s.graph.mutableNode(s.graph.value(out).producer).domain = "stepscope";
    return out;
  };
  const ValueId alone = own("ReluGrad", {dy, y}), shared = own("ReluGrad", {dy, x});
  s.finish({own("BatchNormalizationGrad", {alone, x, n.scale, n.mean, n.variance}),
            own("BatchNormalizationGrad", {shared, x, n.scale, n.mean, n.variance}), s.op("Neg", {shared})});
  EXPECT_EQ(s.apply("fuse_batch_norm").matches, 2u);
  EXPECT_EQ(s.count("FusedBatchNormalizationGrad"), 2u);
  EXPECT_EQ(s.count("ReluGrad"), 0u);
}

TEST(AssignLayouts, ConvolutionsAndWhatLiesBetweenThem) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 8, 8}), w = s.input("w", {16, 3, 3, 3}), v = s.input("v", {32, 16, 3, 3});
  const ValueId first = s.op("Conv", {x, w}), relu = s.op("Relu", {first}), second = s.op("Conv", {relu, v});
  const ValueId flat = s.op("Flatten", {second});
  s.finish({flat});
  const PassResult result = s.apply("assign_layouts");
  EXPECT_EQ(result.matches, 2u);  // what Flatten reads gains as much as its Reorder costs
  for (const ValueId id : {first, relu}) EXPECT_EQ(s.graph.value(id).layout, Layout::kChannels16);
  for (const ValueId id : {x, w, second, flat}) EXPECT_EQ(s.graph.value(id).layout, Layout::kPlain);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition.substr(0, 70),
            "1 convolutions would gain 4096 bytes of reorders, 1 other uses would c");
}

TEST(AssignLayouts, EdgesAreReorderNodes) {
  Sketch s;
  const ValueId x = s.input("x", {2, 16, 8, 8}), w = s.input("w", {16, 16, 3, 3}), scale = s.input("scale", {8});
  const ValueId scaled = s.op("Mul", {x, scale});
  const ValueId a = s.op("Conv", {scaled, w}), b = s.op("Conv", {scaled, w}), c = s.op("Conv", {scaled, w});
  const ValueId sum = s.op("Add", {s.op("Add", {a, b}), c});
  s.finish({s.op("Softmax", {sum}), s.op("Softmax", {sum})});
  const PassResult result = s.apply("assign_layouts");
  EXPECT_EQ(s.count("Reorder"), 2u);  // behind Mul, and once for both Softmax
  EXPECT_EQ(result.notes.size(), 2u);
  EXPECT_EQ(s.graph.value(sum).layout, Layout::kChannels16);
  EXPECT_EQ(s.graph.value(scaled).layout, Layout::kPlain);
}

TEST(AssignLayouts, GatesConcatenationsAndSumsOfChannelsNeedNoReorder) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 8, 8}), stem = s.input("w0", {16, 3, 3, 3}), w = s.input("w1", {32, 32, 1, 1}),
                scales = s.constant(2);
  const ValueId first = s.op("Conv", {x, stem}), second = s.op("Conv", {x, stem}),
                joined = s.op("Concat", {first, second}, {{"axis", std::int64_t{1}}});
  const ValueId gate = s.op("Sigmoid", {s.op("Conv", {s.op("ReduceMean", {joined, s.ints({2, 3})}), w})}),
                gated = s.op("Mul", {joined, gate});
  const ValueId more = s.op("Conv", {gated, w}),
                spread = s.op("Add", {more, s.op("Expand", {s.op("GlobalAveragePool", {more}), s.ints({2, 32, 6, 6})})});
  s.finish({s.op("ReduceSum", {spread, s.ints({0, 2, 3})}, {{"keepdims", std::int64_t{0}}}),
            s.op("GlobalAveragePool", {s.op("Conv", {spread, w})}), scales});
  s.apply("assign_layouts");
  EXPECT_EQ(s.count("Reorder"), 0u);
  for (const ValueId id : {first, second, joined, gated, more, spread})
    EXPECT_EQ(s.graph.value(id).layout, Layout::kChannels16) << s.graph.value(id).name;
  EXPECT_EQ(s.graph.value(gate).layout, Layout::kPlain);
}

// What is decided about a node stays so when its operands were replaced by their copies.
TEST(AssignLayouts, GroupsOfOtherWidthsStayPlainBetweenReorders) {
  Sketch s;
  const ValueId x = s.input("x", {1, 32, 12, 12}), w = s.input("w", {32, 32, 3, 3}), g = s.input("g", {32, 8, 3, 3}),
                last = s.input("last", {32, 32, 3, 3});
  const Attributes padded{{"pads", Ints{1, 1, 1, 1}}};
  Attributes grouped = padded;
  grouped.set("group", std::int64_t{4});
  const ValueId before = s.op("Conv", {x, w}, padded), between = s.op("Conv", {before, g}, grouped);
  s.finish({s.op("Conv", {before, w}, padded), s.op("Conv", {between, w}, padded), s.op("Conv", {between, last}, padded)});
  s.apply("assign_layouts");
  for (const NodeId id : s.graph.order()) {
    const Node& node = s.graph.node(id);
    if (node.attrs.integer("group", 1) == 1) continue;
    for (const ValueId value : {node.input(0), node.input(1), node.output(0)})
      EXPECT_EQ(s.graph.value(value).layout, Layout::kPlain) << s.graph.value(value).name;
  }
  EXPECT_GE(s.count("Reorder"), 2u);
}

TEST(AssignLayouts, OtherChannelsStayPlainWithAReason) {
  Sketch s;
  const ValueId x = s.input("x", {2, 16, 8}), w = s.input("w", {24, 16, 3}), v = s.input("v", {16, 24, 3}),
                u = s.input("u", {16, 4, 1});
  const ValueId odd = s.op("Relu", {s.op("Conv", {x, w})}), back = s.op("Conv", {odd, v});
  s.finish({s.op("Conv", {back, u}, {{"group", std::int64_t{4}}})});
  const PassResult result = s.apply("assign_layouts");
  EXPECT_EQ(s.graph.value(odd).layout, Layout::kPlain);
  const auto named = [&](std::string_view reason) {
    return std::any_of(result.nearMisses.begin(), result.nearMisses.end(),
                       [&](const NearMiss& miss) { return miss.condition.find(reason) != std::string::npos; });
  };
  EXPECT_TRUE(named("24 channels; expected a multiple of 16"));
}

TEST(ChooseWinograd, LargeEnoughWindowsOfThreeOnBlockedMaps) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 33, 33}), stem = s.input("w0", {64, 3, 3, 3}), w = s.input("w1", {64, 64, 3, 3}),
                narrow = s.input("w2", {16, 64, 3, 3});
  const Attributes padded{{"pads", Ints{1, 1, 1, 1}}}, wide{{"pads", Ints{2, 2, 2, 2}}, {"dilations", Ints{2, 2}}},
      coarse{{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{8, 8}}};
  const ValueId first = s.op("Conv", {x, stem}, padded), taken = s.op("Conv", {first, w}, padded);
  const ValueId dilated = s.op("Conv", {taken, w}, wide), few = s.op("Conv", {dilated, narrow}, padded);
  const ValueId small = s.op("Conv", {s.op("Conv", {dilated, w}, coarse), w}, padded);
  s.finish({s.op("GlobalAveragePool", {few}), s.op("GlobalAveragePool", {small})});
  s.apply("assign_layouts");
  const PassResult result = s.apply("choose_winograd");
  EXPECT_EQ(result.matches, 1u);
  for (const NodeId id : s.graph.order()) {
    const Node& node = s.graph.node(id);
    EXPECT_EQ(node.attrs.integer("winograd", 0), node.output(0) == taken ? 1 : 0) << node.label();
  }
  const auto named = [&](std::string_view reason) {
    return std::count_if(result.nearMisses.begin(), result.nearMisses.end(),
                         [&](const NearMiss& miss) { return miss.condition.find(reason) != std::string::npos; });
  };
  EXPECT_EQ(named("'x' does not lie in nChw16c"), 1);
  EXPECT_EQ(named("dilations of 2; expected 1"), 1);
  EXPECT_EQ(named("strides of 8; expected 1"), 1);
  EXPECT_EQ(named("16 channels; expected 32 or more"), 1);
  EXPECT_EQ(named("8 tiles of 4 x 4 results; expected 64 or more"), 1);
}

}  // namespace
}  // namespace stepscope
