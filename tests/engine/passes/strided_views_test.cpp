// strided_views: which copies vanish, what the readers then say, where a copy stays and why; that losses, gradients and
// parameters of a step keep their bits.
#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/sketch.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::Ints;
using testing::ints;
using testing::node;
using testing::Sketch;
using testing::SmallStep;
using testing::smallStep;

struct Packed : Sketch {
  // x [2, 5, 36]: queries, keys and values of three heads of four numbers.
  std::vector<ValueId> split(ValueId x, const Ints& sizes, std::int64_t axis) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sizes.size(); ++i) names.push_back("part" + std::to_string(i));
    const NodeId node = graph.addNode("split", "", "Split", {x, ints(sizes)}, names, {{"axis", axis}});
    return graph.node(node).outputs;
  }
  ValueId heads(ValueId x) { return op("Reshape", {x, ints({-1, 5, 3, 4})}); }
  ValueId turned(ValueId x, Ints perm) { return op("Transpose", {x}, {{"perm", std::move(perm)}}); }

  // Applies it, and once more: it finds nothing, and touches nothing.
  std::size_t matches() {
    const std::size_t found = apply("strided_views").matches;
    const std::uint64_t version = graph.version();
    EXPECT_EQ(apply("strided_views").matches, 0u);
    EXPECT_EQ(graph.version(), version);
    return found;
  }
  std::string miss() {
    const std::uint64_t version = graph.version();
    const PassResult result = apply("strided_views");
    EXPECT_EQ(result.matches, 0u);
    EXPECT_EQ(graph.version(), version);
    std::string all;
    for (const NearMiss& miss : result.nearMisses) all += miss.condition + "; ";
    return all;
  }
};

TEST(StridedViews, ProductsReadHeadsOfAPackedProjection) {
  Packed s;
  const auto part = s.split(s.input("x", {1, 5, 36}), {12, 12, 12}, -1);
  const ValueId scores =
      s.op("MatMul", {s.turned(s.heads(part[0]), {0, 2, 1, 3}), s.turned(s.heads(part[1]), {0, 2, 3, 1})});
  s.finish({s.op("MatMul", {scores, s.turned(s.heads(part[2]), {0, 2, 1, 3})})});
  EXPECT_EQ(s.apply("fold_transposes").matches, 3u);
  EXPECT_EQ(s.matches(), 1u);
  ASSERT_EQ(s.graph.order().size(), 2u);
  const Node& first = s.graph.node(s.graph.order()[0]);
  EXPECT_EQ(first.inputs, (std::vector<ValueId>{s.graph.inputs()[0], s.graph.inputs()[0]}));
  EXPECT_EQ(first.attrs.integers("viewA"), (Ints{0, 1, 5, 3, 4, 180, 36, 4, 1}));
  EXPECT_EQ(first.attrs.integers("viewB"), (Ints{12, 1, 5, 3, 4, 180, 36, 4, 1}));
  EXPECT_EQ(first.attrs.integers("permA"), (Ints{0, 2, 1, 3}));
}

// Vision models turn the packed projection first, and then take its three planes.
TEST(StridedViews, TransposesInFrontOfASplitGoWithIt) {
  Packed s;
  const ValueId x = s.op("Reshape", {s.input("x", {1, 5, 36}), s.ints({1, 5, 3, 3, 4})});
  const auto part = s.split(s.turned(x, {2, 0, 3, 1, 4}), {1, 1, 1}, 0);
  const auto plane = [&](std::size_t i) { return s.op("Squeeze", {part[i], s.ints({0})}); };
  const ValueId scores = s.op("MatMul", {plane(0), s.turned(plane(1), {0, 1, 3, 2})});
  s.finish({s.op("MatMul", {scores, plane(2)})});
  s.apply("fold_transposes");
  EXPECT_EQ(s.matches(), 1u);
  EXPECT_EQ(s.count("Transpose") + s.count("Split"), 0u);
}

TEST(StridedViews, AttentionReadsHeadsOfAPackedProjection) {
  Packed s;
  const auto part = s.split(s.input("x", {2, 5, 36}), {12, 12, 12}, -1);
  const auto heads = [&](std::size_t i) { return s.turned(s.heads(part[i]), {0, 2, 1, 3}); };
  const ValueId scores = s.op("MatMul", {heads(0), s.turned(heads(1), {0, 1, 3, 2})});
  s.finish({s.turned(s.op("MatMul", {s.op("Softmax", {scores}, {{"axis", std::int64_t{-1}}}), heads(2)}), {0, 2, 1, 3})});
  EXPECT_EQ(s.apply("fuse_attention").matches, 1u);
  EXPECT_EQ(s.matches(), 1u);
  EXPECT_EQ(s.graph.order().size(), 1u);
  EXPECT_EQ(s.only("FusedAttention").attrs.integers("viewV"), (Ints{24, 2, 5, 3, 4, 180, 36, 4, 1}));
  EXPECT_EQ(s.only("FusedAttention").provenance.pass, "fuse_attention") << "who made it, not who touched it last";
}

// Whole rows lie as they did, so that one matrix stays one.
TEST(StridedViews, ASliceOfRowsIsThePlaceWhereTheyBegin) {
  Packed s;
  const ValueId x = s.input("x", {6, 4}), w = s.input("w", {4, 3});
  const ValueId rows = s.op("Slice", {x, s.ints({2}), s.ints({5}), s.ints({0})});
  s.finish({s.op("MatMul", {rows, w})});
  EXPECT_EQ(s.matches(), 1u);
  EXPECT_EQ(s.only("Product").attrs.integers("viewA"), (Ints{8, 3, 4, 4, 1}));
}

TEST(StridedViews, EverySecondRowOfABatch) {
  Packed s;
  const ValueId x = s.input("x", {2, 6, 4}), w = s.input("w", {2, 4, 3});
  const ValueId rows = s.op("Slice", {x, s.ints({-5}), s.ints({6}), s.ints({1}), s.ints({2})});
  s.finish({s.op("MatMul", {rows, w})});
  EXPECT_EQ(s.matches(), 1u);
  EXPECT_EQ(s.only("Product").attrs.integers("viewA"), (Ints{4, 2, 3, 4, 24, 8, 1}));
}

// A gated unit: both halves of a projection.
TEST(StridedViews, ChainsReadTheirPartsOfARow) {
  Packed s;
  const auto part = s.split(s.input("x", {2, 5, 32}), {16, 16}, -1);
  s.finish({s.op("Mul", {part[0], s.op("Sigmoid", {part[1]})})});
  EXPECT_EQ(s.apply("fuse_pointwise").matches, 1u);
  EXPECT_EQ(s.matches(), 1u);
  ASSERT_EQ(s.graph.order().size(), 1u);
  const Node& chain = s.only("Pointwise");
  EXPECT_EQ(chain.inputs, (std::vector<ValueId>{s.graph.inputs()[0], s.graph.inputs()[0]}));
  // The gate's half is read first.
  EXPECT_EQ(chain.attrs.integers("view0"), (Ints{16, 2, 5, 16, 160, 32, 1}));
  EXPECT_EQ(chain.attrs.integers("view1"), (Ints{0, 2, 5, 16, 160, 32, 1}));
}

// An elementwise node by itself is a chain of one; heads are read where they lie; a sum of a chain sees strides too.
TEST(StridedViews, ElementwiseNodesAndSumsOfChains) {
  Packed s;
  const ValueId x = s.input("x", {2, 5, 3, 16});
  const ValueId turned = s.turned(x, {0, 2, 1, 3});
  const ValueId clipped = s.op("Clip", {turned, s.constant(-0.5)});
  const ValueId square = s.op("Mul", {turned, turned});
  s.finish({clipped, s.op("ReduceSum", {square, s.ints({0, 1, 2})}, {{"keepdims", std::int64_t{0}}})});
  EXPECT_EQ(s.apply("fuse_pointwise").matches, 1u);
  EXPECT_EQ(s.matches(), 1u);
  EXPECT_EQ(s.count("Transpose"), 0u);
  const auto* steps = std::get_if<std::vector<std::string>>(s.only("Pointwise").attrs.find("steps"));
  ASSERT_TRUE(steps);
  EXPECT_EQ(*steps, std::vector<std::string>{"Max 0 1"});
  EXPECT_EQ(s.only("PointwiseSum").attrs.integers("view0"), (Ints{0, 2, 3, 5, 16, 240, 16, 48, 1}));
}

// Halves that change places and one of which changes its sign, as positions that rotate have them: of heads that are turned.
TEST(StridedViews, ConcatReadsPartsWhereTheyLie) {
  Packed s;
  const ValueId x = s.turned(s.input("x", {2, 5, 3, 16}), {0, 2, 1, 3});
  const ValueId first = s.op("Slice", {x, s.ints({0}), s.ints({8}), s.ints({3})}),
                second = s.op("Slice", {x, s.ints({8}), s.ints({16}), s.ints({3})});
  const ValueId half = s.op("Concat", {s.op("Neg", {second}), first}, {{"axis", std::int64_t{-1}}});
  s.finish({s.op("Add", {s.op("Mul", {x, s.input("cos", {5, 16})}), s.op("Mul", {half, s.input("sin", {5, 16})})})});
  s.apply("fuse_pointwise");
  EXPECT_EQ(s.matches(), 1u);
  EXPECT_EQ(s.count("Transpose") + s.count("Slice") + s.count("Concat"), 0u);
  EXPECT_EQ(s.graph.order().size(), 3u);
  EXPECT_EQ(s.only("Join").attrs.integers("view1"), (Ints{0, 2, 3, 5, 8, 240, 16, 48, 1}));
  EXPECT_EQ(s.only("Join").provenance.pass, "strided_views");
}

TEST(StridedViews, NearMissesOfChains) {
  {
    Packed s;
    s.finish({s.op("Neg", {s.turned(s.input("x", {2, 5, 32}), {0, 2, 1})})});
    EXPECT_NE(s.miss().find("1 neighbouring elements; expected 8 or more"), std::string::npos);
  }
  {
    Packed s;
    const auto part = s.split(s.input("x", {2, 5, 32}), {16, 16}, -1);
    s.finish({s.op("Neg", {part[0]}), s.op("Softmax", {part[1]}, {{"axis", std::int64_t{-1}}})});
    EXPECT_NE(s.miss().find("Softmax"), std::string::npos);
  }
  {
    Packed s;
    const auto part = s.split(s.input("x", {2, 32, 4, 4}), {16, 16}, 1);
    const ValueId gated = s.op("Mul", {part[0], s.op("Sigmoid", {part[1]})});
    s.finish({s.op("Conv", {gated, s.input("w", {16, 16, 1, 1})})});
    s.apply("fuse_pointwise");
    EXPECT_NE(s.miss().find("another layout"), std::string::npos);
  }
}

// Whatever reads a part and sees no strides is named, with what its copy costs, also where nobody else would see any.
TEST(StridedViews, NearMissesOfNormsSoftmaxConvAndPad) {
  const auto read = [](const std::string& op, const auto& more) {
    Packed s;
    const auto part = s.split(s.input("x", {2, 8, 12}), {4, 8}, -1);
    std::vector<ValueId> inputs{part[0]};
    more(s, inputs);
    s.finish({s.op(op, inputs)});
    return s.miss();
  };
  const auto nothing = [](Packed&, std::vector<ValueId>&) {};
  const std::string copied = " reads 'part0' and sees no strides: 256 bytes are copied";
  EXPECT_NE(read("Softmax", nothing).find(copied), std::string::npos) << read("Softmax", nothing);
  const auto scale = [](Packed& s, std::vector<ValueId>& inputs) { inputs.push_back(s.input("scale", {4})); };
  EXPECT_NE(read("LayerNormalization", scale).find(copied), std::string::npos) << read("LayerNormalization", scale);
  const auto filter = [](Packed& s, std::vector<ValueId>& inputs) { inputs.push_back(s.input("filter", {3, 8, 1})); };
  EXPECT_NE(read("Conv", filter).find(copied), std::string::npos) << read("Conv", filter);
  const auto pads = [](Packed& s, std::vector<ValueId>& inputs) { inputs.push_back(s.ints({0, 0, 1, 0, 0, 1})); };
  EXPECT_NE(read("Pad", pads).find(copied), std::string::npos) << read("Pad", pads);
}

TEST(StridedViews, NearMisses) {
  {
    Packed s;
    const auto part = s.split(s.input("x", {2, 5, 8}), {4, 4}, -1);
    s.finish({s.op("MatMul", {part[0], s.input("w", {2, 4, 3})}), s.op("Softmax", {part[1]}, {{"axis", std::int64_t{-1}}})});
    EXPECT_NE(s.miss().find("reads 'part1' and sees no strides"), std::string::npos);
  }
  {
    Packed s;
    const ValueId rows = s.op("Slice", {s.input("x", {6, 8}), s.ints({0}), s.ints({4}), s.ints({1})});
    s.finish({s.op("MatMul", {rows, s.input("w", {4, 3})})});
    EXPECT_NE(s.miss().find("rows of its one matrix would lie apart"), std::string::npos);
  }
  {
    Packed s;
    const ValueId some = s.op("Slice", {s.input("x", {2, 6, 8}), s.ints({0}), s.ints({8}), s.ints({2}), s.ints({2})});
    s.finish({s.op("MatMul", {some, s.input("w", {2, 4, 3})})});
    EXPECT_NE(s.miss().find("no neighbouring elements"), std::string::npos);
  }
  {
    Packed s;
    const ValueId back = s.op("Slice", {s.input("x", {2, 3, 4}), s.ints({2}), s.ints({-4}), s.ints({1}), s.ints({-1})});
    s.finish({s.op("MatMul", {back, s.input("w", {2, 4, 3})})});
    EXPECT_NE(s.miss().find("is not known, or goes backwards"), std::string::npos);
  }
  {
    Packed s;
    const auto part = s.split(s.input("x", {2, 5, 8}), {4, 4}, -1);
    s.finish({s.op("MatMul", {part[0], s.turned(part[1], {0, 2, 1})}), part[1]});
    EXPECT_NE(s.miss().find("'part1' is kept"), std::string::npos);
  }
  {
    Packed s;
    const auto part = s.split(s.input("x", {2, 5, 8}), {4, 4}, -1);
    const ValueId flat = s.op("Reshape", {part[0], s.ints({2, 20, 1})});
    s.finish({s.op("MatMul", {flat, s.input("w", {2, 1, 3})}), s.op("MatMul", {part[1], s.input("v", {2, 4, 3})})});
    EXPECT_NE(s.miss().find("needs elements that lie side by side"), std::string::npos);
  }
}

// One place of every row is read at the end: the rows would be kept for it.
TEST(StridedViews, APartThatWouldKeepTheWholeStaysACopy) {
  Packed s;
  const ValueId x = s.op("Neg", {s.input("x", {2, 6, 4})});
  const ValueId some = s.op("Slice", {x, s.ints({0}), s.ints({2}), s.ints({1})});
  const ValueId sum = s.op("ReduceSum", {x, s.ints({1})}, {{"keepdims", std::int64_t{0}}});
  s.finish({s.op("MatMul", {some, s.input("w", {2, 4, 3})}), sum});
  const std::string miss = s.miss();
  // The sum is computed before the product, so that x is dead by then.
  EXPECT_NE(miss.find("48 elements, would be kept for 16 of them"), std::string::npos) << miss;
}

// --- steps

std::vector<float> ramp(std::size_t count, float from, float step) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(from + step * static_cast<float>((i * 7) % 23));
  return values;
}

// x [batch, 6, 8] · w [8, 24] → queries, keys and values of two heads of four numbers.
std::string packedAttention(std::int64_t batch) {
  const auto heads = [](const std::string& part, const std::string& to, Ints perm) {
    return node("Reshape", part + " heads", part + "_heads") +
           node("Transpose", part + "_heads", to, attribute("perm", std::vector<std::int64_t>(perm)));
  };
  return floats("x", {batch, 6, 8}, ramp(static_cast<std::size_t>(batch * 48), -0.9F, 0.08F)) +
         floats("w", {8, 24}, ramp(192, -0.5F, 0.05F)) + ints("thirds", {3}, {8, 8, 8}) +
         ints("heads", {4}, {batch, 6, 2, 4}) + node("MatMul", "x w", "qkv") +
         node("Split", "qkv thirds", "q k v", attribute("axis", 2)) + heads("q", "qs", {0, 2, 1, 3}) +
         heads("k", "ks", {0, 2, 3, 1}) + heads("v", "vs", {0, 2, 1, 3}) + node("MatMul", "qs ks", "scores") +
         node("Softmax", "scores", "p", attribute("axis", -1)) + node("MatMul", "p vs", "y") +
         node("Mul", "y y", "squared") + node("ReduceSum", "squared", "loss", attribute("keepdims", 0));
}

// With the pass and without it: the same bits. Both are answered.
std::pair<SmallStep, SmallStep> sameBits(const std::string& graph, std::map<std::string, std::string> settings) {
  settings["pass.strided_views"] = "on";
  const auto on = smallStep(graph, 20, {"w"}, {1, settings, {}});
  settings["pass.strided_views"] = "off";
  const auto off = smallStep(graph, 20, {"w"}, {1, settings, {}});
  EXPECT_TRUE(on.has_value()) << on.error().message;
  EXPECT_TRUE(off.has_value()) << off.error().message;
  if (!on || !off) return {};
  EXPECT_EQ(on->loss, off->loss);
  EXPECT_EQ(on->gradients, off->gradients);
  EXPECT_EQ(on->state, off->state);
  EXPECT_GT(std::abs(off->gradients.at("w")[0]), 0);
  return {*on, *off};
}

// One batch entry, and two: batches of two axes that lie apart.
TEST(StridedViews, AStepKeepsItsBitsOnEveryDevice) {
  for (const std::int64_t batch : {1, 2})
    for (const std::string device : {"cpu", "mirror", "emulated"})
      for (const std::string fused : {"off", "on"}) {
        SCOPED_TRACE(device + ", fuse_attention " + fused + ", batch " + std::to_string(batch));
        const auto [on, off] = sameBits(packedAttention(batch), {{"device", device}, {"pass.fuse_attention", fused}});
        EXPECT_EQ(on.running.count("Split"), 0u);
        EXPECT_EQ(off.running.count("Split"), 1u);
        EXPECT_LT(on.instructions, off.instructions);
      }
}

TEST(StridedViews, AStepInBFloat16) {
  for (const std::string device : {"cpu", "emulated"}) {
    for (const std::int64_t batch : {1, 2}) {
      const auto [on, off] = sameBits(packedAttention(batch), {{"device", device}, {"precision", "bf16"}});
      EXPECT_EQ(on.running.count("Split"), 0u);
      EXPECT_EQ(off.running.count("Split"), 1u);
    }
  }
}

// A gated unit behind a packed projection, and the gradient of the gate; heads that are turned and scaled.
TEST(StridedViews, AStepWhoseChainsReadParts) {
  const std::string graph =
      floats("x", {3, 8}, ramp(24, -0.9F, 0.08F)) + floats("w", {8, 32}, ramp(256, -0.5F, 0.05F)) +
      ints("halves", {2}, {16, 16}) + floats("limit", {}, {-0.2F}) + ints("heads", {4}, {1, 3, 2, 8}) +
      node("MatMul", "x w", "both") + node("Split", "both halves", "a b", attribute("axis", 1)) +
      node("Sigmoid", "b", "gate") + node("Mul", "a gate", "gated") + node("Reshape", "gated heads", "by_head") +
      node("Transpose", "by_head", "turned", attribute("perm", std::vector<std::int64_t>{0, 2, 1, 3})) +
      node("Clip", "turned limit", "clipped") + node("Softmax", "clipped", "y", attribute("axis", -1)) +
      node("Mul", "y y", "squared") + node("ReduceSum", "squared", "loss", attribute("keepdims", 0));
  for (const std::string device : {"cpu", "mirror", "emulated"}) {
    SCOPED_TRACE(device);
    const auto [on, off] = sameBits(graph, {{"device", device}});
    EXPECT_EQ(on.running.count("Split"), 0u);
    EXPECT_EQ(off.running.count("Split"), 1u);
    EXPECT_LT(on.instructions, off.instructions);
  }
}

// Views are of whole values, which a step keeps as it keeps others: values, edits and steps backwards are those of the
// projection; a part that somebody keeps is a copy.
TEST(StridedViews, APartThatIsKeptIsACopy) {
  const auto step = smallStep(packedAttention(1), 20, {"w"}, {1, {}, {"k"}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->running.count("Split"), 1u);
  EXPECT_EQ(step->values.at("k").size(), 48u);
}

}  // namespace
}  // namespace stepscope
