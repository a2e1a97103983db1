// Passes on small graphs of convolution networks: fuse_relu_gradient, fuse_batch_norm, assign_layouts, choose_winograd.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Ints;
using testing::Sketch;

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
