// Passes that take one or a few nodes for others: where they apply, what they leave and why, that a second run finds
// nothing, and that losses and gradients of a step stay.
#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/one_pass.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::Ints;
using testing::ints;
using testing::matchesOf;
using testing::missOf;
using testing::node;
using testing::ramp;
using testing::sameStep;
using testing::Sketch;
using testing::SmallStep;
using testing::smallStep;
using testing::sumOfSquares;

// --- fold_constants

// Exporters give a number the type of what it is multiplied with, whose contents nobody knows.
TEST(FoldConstants, ACastOfANumberToTheTypeOfAComputedValue) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  s.finish({s.op("Mul", {x, s.op("Sqrt", {s.op("CastLike", {s.constant(0.25), x})})})});
  EXPECT_EQ(matchesOf(s, "fold_constants"), 2u);
  EXPECT_EQ(s.graph.order().size(), 1u);
}

// --- gather_to_slice

TEST(GatherToSlice, NeighboursHoweverFarApart) {
  for (const Ints& places : {Ints{1, 2, 3}, Ints{0, 2, 4}, Ints{3, 2, 1, 0}, Ints{-2, -1}, Ints{4}}) {
    Sketch s;
    s.finish({s.op("Gather", {s.input("x", {2, 5, 3}), s.ints(places)}, {{"axis", std::int64_t{1}}})});
    EXPECT_EQ(matchesOf(s, "gather_to_slice"), 1u);
    EXPECT_EQ(s.count("Slice"), 1u);
  }
}

TEST(GatherToSlice, ARangeUpToAnExtent) {
  const std::string graph =
      "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"n\" } dim { dim_value: 3 } } } } "
      "} " +
      floats("w", {4, 3}, ramp(12)) + ints("zero", {}, {0}) + ints("one", {}, {1}) + ints("first", {1}, {0}) +
      node("Shape", "x", "extents") + node("Gather", "extents zero", "n") + node("Range", "zero n one", "places") +
      node("Gather", "w places", "rows") + node("Add", "rows x", "y") + sumOfSquares("y");
  const SmallStep step = sameStep(graph, "gather_to_slice", {"w"});
  EXPECT_EQ(step.running.count("GatherGrad"), 0u);
}

TEST(GatherToSlice, NearMisses) {
  const auto miss = [](const Ints& places) {
    Sketch s;
    s.finish({s.op("Gather", {s.input("x", {5, 3}), s.ints(places)}, {{"axis", std::int64_t{0}}})});
    return missOf(s, "gather_to_slice");
  };
  EXPECT_EQ(miss({0, 2, 3}), "its places have no one distance");
  EXPECT_EQ(miss({1, 1}), "a place is picked twice");
}

// --- eliminate_concats

TEST(EliminateConcats, PartsThatAreTakenBack) {
  Sketch s;
  const ValueId a = s.input("a", {2, 3}), b = s.input("b", {2, 1}), c = s.input("c", {2, 4});
  const ValueId y = s.op("Concat", {a, b, c}, {{"axis", std::int64_t{-1}}});
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return s.op("Neg", {s.op("Slice", {y, s.ints({begin}), s.ints({end}), s.ints({1})})});
  };
  s.finish({part(0, 3), part(-4, 99)});
  EXPECT_EQ(matchesOf(s, "eliminate_concats"), 2u);
  EXPECT_EQ(s.count("Concat"), 0u);
  EXPECT_EQ(s.count("Slice"), 0u);
}

TEST(EliminateConcats, ASplitThatUndoesIt) {
  Sketch s;
  const ValueId y = s.op("Concat", {s.input("a", {2, 3}), s.input("b", {2, 1})}, {{"axis", std::int64_t{1}}});
  const NodeId split = s.graph.addNode("", "", "Split", {y, s.ints({3, 1})}, {"p", "q"}, {{"axis", std::int64_t{1}}});
  s.finish({s.op("Neg", {s.graph.node(split).output(0)}), s.op("Neg", {s.graph.node(split).output(1)})});
  EXPECT_EQ(matchesOf(s, "eliminate_concats"), 1u);
  EXPECT_EQ(s.count("Concat") + s.count("Split"), 0u);
}

TEST(EliminateConcats, NearMisses) {
  const auto miss = [](const Ints& begin, const Ints& end, std::int64_t axis) {
    Sketch s;
    const ValueId y = s.op("Concat", {s.input("a", {4, 3}), s.input("b", {4, 1})}, {{"axis", std::int64_t{1}}});
    s.finish({s.op("Neg", {s.op("Slice", {y, s.ints(begin), s.ints(end), s.ints({axis})})})});
    return missOf(s, "eliminate_concats");
  };
  EXPECT_EQ(miss({1}, {3}, 1), "places 1 to 3 are no part that was joined");
  EXPECT_EQ(miss({0}, {3}, 0), "it slices another axis than the parts were joined along");
  Sketch s;
  const ValueId y = s.op("Concat", {s.input("a", {2, 3}), s.input("b", {2, 1})}, {{"axis", std::int64_t{1}}});
  s.finish({s.op("Slice", {y, s.ints({0}), s.ints({3}), s.ints({1})})});
  EXPECT_EQ(missOf(s, "eliminate_concats"), "its result is an output of the graph");
}

TEST(EliminateConcats, TheStepIsTheSame) {
  const std::string graph =
      floats("a", {2, 3}, ramp(6)) + floats("b", {2, 2}, ramp(4)) + ints("from", {1}, {3}) + ints("to", {1}, {5}) +
      ints("axis", {1}, {1}) + node("Concat", "a b", "y", attribute("axis", 1)) + node("Slice", "y from to axis", "z") +
      node("ReduceSum", "a", "sum", attribute("keepdims", 0)) + node("Add", "z sum", "t") + sumOfSquares("t");
  EXPECT_EQ(sameStep(graph, "eliminate_concats", {"a", "b"}).running.count("Concat"), 0u);
}

// --- drop_expands

TEST(DropExpands, ElementwiseNodesBroadcastByThemselves) {
  Sketch s;
  const ValueId x = s.input("x", {2, 8, 4}), scale = s.input("scale", {8, 1});
  const ValueId wide = s.op("Expand", {scale, s.ints({2, 8, 4})});
  s.finish({s.op("Mul", {x, wide}), s.op("Where", {s.op("Less", {wide, x}), wide, x})});
  EXPECT_EQ(matchesOf(s, "drop_expands"), 1u);
  EXPECT_EQ(s.count("Expand"), 0u);
}

TEST(DropExpands, NearMisses) {
  Sketch s;
  const ValueId wide = s.op("Expand", {s.input("x", {1, 4}), s.ints({3, 4})});
  s.finish({s.op("Add", {wide, s.input("y", {4})})});
  EXPECT_TRUE(missOf(s, "drop_expands").ends_with("gets its extents from it"));
  Sketch m;
  m.finish({m.op("MatMul", {m.op("Expand", {m.input("x", {1, 4}), m.ints({3, 4})}), m.input("w", {4, 2})})});
  EXPECT_TRUE(missOf(m, "drop_expands").ends_with("does not broadcast what it reads"));
  Sketch o;
  const ValueId kept = o.op("Expand", {o.input("x", {1, 4}), o.ints({3, 4})});
  o.finish({kept, o.op("Mul", {kept, o.input("y", {3, 4})})});
  EXPECT_EQ(missOf(o, "drop_expands"), "its result outlives the graph");
}

TEST(DropExpands, TheStepIsTheSame) {
  const std::string graph = floats("x", {3, 4}, ramp(12)) + floats("w", {1, 4}, ramp(4, 0.2f)) + ints("shape", {2}, {3, 4}) +
                            node("Expand", "w shape", "wide") + node("Mul", "x wide", "y") + sumOfSquares("y");
  EXPECT_EQ(sameStep(graph, "drop_expands", {"x", "w"}).running.count("Expand"), 0u);
}

// --- transpose_to_reshape

TEST(TransposeToReshape, AxesOfOneElementMove) {
  for (const auto& [dims, perm] :
       std::vector<std::pair<Ints, Ints>>{{{2, 1, 3, 4}, {0, 2, 1, 3}}, {{1, 3}, {1, 0}}, {{2, 3, 1}, {2, 0, 1}}}) {
    Sketch s;
    Shape shape;
    for (const std::int64_t dim : dims) shape.emplace_back(dim);
    s.finish({s.op("Transpose", {s.input("x", shape)}, {{"perm", perm}})});
    EXPECT_EQ(matchesOf(s, "transpose_to_reshape"), 1u);
    EXPECT_EQ(s.count("Reshape"), 1u);
  }
}

// Q24: no permutation reverses the axes.
TEST(TransposeToReshape, Q24WithoutAPermutation) {
  Sketch s;
  s.finish({s.op("Transpose", {s.input("x", {1, 5})})});
  EXPECT_EQ(matchesOf(s, "transpose_to_reshape"), 1u);
  EXPECT_EQ(s.graph.value(s.graph.outputs()[0]).type.text(), "float32[5, 1]");
}

TEST(TransposeToReshape, AxesOfMoreElementsAreANearMiss) {
  Sketch s;
  s.finish({s.op("Transpose", {s.input("x", {2, 1, 3})}, {{"perm", Ints{2, 1, 0}}})});
  EXPECT_EQ(missOf(s, "transpose_to_reshape"), "it moves axes of more than one element");
}

TEST(TransposeToReshape, TheStepIsTheSame) {
  const std::string graph = floats("x", {2, 1, 3}, ramp(6)) + floats("w", {2, 3}, ramp(6, 0.1f)) +
                            node("Transpose", "x", "t", attribute("perm", Ints{1, 0, 2})) + node("Mul", "t w", "y") +
                            sumOfSquares("y");
  EXPECT_EQ(sameStep(graph, "transpose_to_reshape", {"x", "w"}).running.count("Transpose"), 0u);
}

// --- fuse_fake_quant

std::string quantised(const std::string& zero, const std::string& more = "", const std::vector<std::int64_t>& scales = {},
                      const std::string& read = "y") {
  return floats("x", {3, 4}, ramp(12, -2.1f, 0.41f)) +
         floats("s", scales, std::vector<float>(scales.empty() ? 1 : 4, 0.1f)) + "initializer { name: \"z\" data_type: 3 " +
         (scales.empty() ? "" : "dims: 4 ") + "int32_data: " + zero + " } " +
         node("QuantizeLinear", "x s z", "q", attribute("axis", 1)) +
         node("DequantizeLinear", "q s z", "y", attribute("axis", 1)) + more + sumOfSquares(read);
}

TEST(FuseFakeQuant, APairIsOneNode) {
  for (const char* zero : {"0", "4"}) {
    const SmallStep step = sameStep(quantised(zero), "fuse_fake_quant", {"x"}, {{"freeze", "^s$"}});
    EXPECT_EQ(step.running.count("FakeQuant"), 1u);
    EXPECT_EQ(step.running.count("QuantizeLinear"), 0u);
  }
}

TEST(FuseFakeQuant, AnOddZeroPointStays) {
  const SmallStep step = sameStep(quantised("3"), "fuse_fake_quant", {"x"}, {{"freeze", "^s$"}});
  EXPECT_EQ(step.running.count("FakeQuant"), 0u);
  EXPECT_EQ(step.running.count("QuantizeLinear"), 1u);
}

// Q18: integers with two readers are left alone, and the model trains.
TEST(FuseFakeQuant, Q18IntegersWithTwoReadersStay) {
  const SmallStep step =
      sameStep(quantised("0", node("DequantizeLinear", "q s z", "second") + node("Add", "y second", "both"), {}, "both"),
               "fuse_fake_quant", {"x"}, {{"freeze", "^s$"}});
  EXPECT_EQ(step.running.count("FakeQuant"), 0u);
  EXPECT_GT(step.loss, 0);
}

// --- conv1d_to_matmul

std::string convolution(int group, bool bias, const std::string& more = "") {
  return floats("x", {2, 4, 5}, ramp(40)) +
         floats("w", {6, 4 / group, 1}, ramp(static_cast<std::size_t>(24 / group), 0.1f)) + floats("b", {6}, ramp(6, 0.3f)) +
         node("Conv", bias ? "x w b" : "x w", "y", attribute("group", group) + more) +
         (bias ? "" : node("Add", "y late", "t")) + (bias ? "" : floats("late", {1}, {0.5f})) +
         sumOfSquares(bias ? "y" : "t");
}

TEST(Conv1dToMatMul, WithGroupsAndWithout) {
  for (const int group : {1, 2})
    for (const bool bias : {false, true}) {
      const SmallStep step = sameStep(convolution(group, bias), "conv1d_to_matmul",
                                      bias ? std::vector<std::string>{"x", "w", "b"} : std::vector<std::string>{"x", "w"});
      EXPECT_EQ(step.running.count("Conv"), 0u) << group;
    }
}

TEST(Conv1dToMatMul, NearMisses) {
  const auto miss = [](std::int64_t width, Attributes attrs) {
    Sketch s;
    s.finish({s.op("Conv", {s.input("x", {2, 4, 5}), s.input("w", {3, 4, width})}, std::move(attrs))});
    return missOf(s, "conv1d_to_matmul");
  };
  EXPECT_EQ(miss(2, {}), "its windows have more than one place");
  EXPECT_EQ(miss(1, {{"strides", Ints{2}}}), "its windows skip places");
  EXPECT_EQ(miss(1, {{"pads", Ints{1, 0}}}), "its input is padded");
  Sketch s;
  s.finish({s.op("Conv", {s.input("x", {2, 4, 5, 5}), s.input("w", {3, 4, 1, 1})})});
  EXPECT_EQ(missOf(s, "conv1d_to_matmul"), "0 near misses") << "images are no matter of this pass";
}

// --- what more general passes do already

// ORT's BiasGelu leaves a product and one node that adds the bias; here the product adds it, and Gelu follows.
TEST(GeneralPasses, ABiasAndGeluBehindAProductAreTwoInstructions) {
  const std::string graph = floats("x", {3, 4}, ramp(12)) + floats("w", {4, 4}, ramp(16)) + floats("b", {4}, ramp(4)) +
                            node("MatMul", "x w", "p") + node("Add", "p b", "a") + node("Gelu", "a", "y") +
                            node("ReduceSum", "y", "loss", attribute("keepdims", 0));
  const auto step = smallStep(graph, 20, {"w", "b"}, {1, {{"freeze", "^x$"}}, {}});
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->running.count("Add"), 0u);
  EXPECT_EQ(step->running.count("Gelu"), 0u) << "the loss sums it";
  EXPECT_EQ(step->running.at("PointwiseSum"), 1u);
  EXPECT_EQ(step->running.at("GeluGrad"), 1u);
}

// ORT's ReshapeFusion makes a constant of the arithmetic in front of a Reshape; UnsqueezeElimination and ShapeOptimizer
// likewise. Here none of it is an instruction, whatever extents are symbolic, and views are none either.
TEST(GeneralPasses, ShapeArithmeticAndViewsAreNoInstructions) {
  const std::string graph =
      "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"n\" } dim { dim_param: \"m\" } dim "
      "{ dim_value: 6 } } } } } " +
      floats("w", {6}, ramp(6, 0.2f)) + ints("zero", {}, {0}) + ints("one", {}, {1}) + ints("at", {1}, {0}) +
      ints("three", {1}, {3}) + ints("rest", {1}, {-1}) + node("Mul", "x w", "a") + node("Shape", "x", "extents") +
      node("Gather", "extents zero", "n") + node("Gather", "extents one", "m") + node("Unsqueeze", "n at", "n1") +
      node("Unsqueeze", "m at", "m1") + node("Concat", "n1 m1 three rest", "target", attribute("axis", 0)) +
      node("Reshape", "a target", "r") + node("Unsqueeze", "r at", "u") +
      node("ReduceSum", "u", "loss", attribute("keepdims", 0));
  const auto step = smallStep(graph, 20, {"w"});
  ASSERT_TRUE(step) << step.error().message;
  for (const char* op : {"Shape", "Gather", "Unsqueeze", "Concat", "Reshape"}) EXPECT_EQ(step->running.count(op), 0u) << op;
}

// An equation whose extents only the batch tells: 1 in one operand against n in the other.
TEST(GeneralPasses, EinsumOfOneAgainstManySymbolically) {
  const std::string input =
      "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"n\" } dim { dim_value: 3 } } } } } ";
  const std::string graph = input + floats("w", {1, 3}, ramp(3, 0.2f)) +
                            node("Einsum", "x w", "y", "attribute { name: \"equation\" type: STRING s: \"nk,nk->n\" } ") +
                            sumOfSquares("y");
  EXPECT_EQ(sameStep(graph, "lower_einsum", {"w"}).running.count("Einsum"), 0u);
}

}  // namespace
}  // namespace stepscope
