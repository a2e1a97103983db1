// Parts of values taken before the nodes that make them: what is passed, what is not and why, and that numbers, gradients
// and random masks stay.
#include <gtest/gtest.h>

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
using testing::smallStep;
using testing::textAttribute;

ValueId firstOf(Sketch& s, ValueId x, std::int64_t axis) {
  return s.op("Slice", {x, s.ints({0}), s.ints({1}), s.ints({axis})});
}
ValueId place(Sketch& s, ValueId x, std::int64_t at, std::int64_t axis) {
  return s.op("Gather", {x, s.graph.addConstant("at", Tensor::scalar(DType::kI64, static_cast<double>(at)))},
              {{"axis", axis}});
}
const Node& makerOf(const Sketch& s, ValueId value) { return s.graph.node(s.graph.value(value).producer); }

// Hoists, and once more: nothing is left to do, and nothing is touched.
PassResult hoist(Sketch& s) {
  PassResult result = s.apply("hoist_slices");
  const std::uint64_t version = s.graph.version();
  EXPECT_EQ(s.apply("hoist_slices").matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
  return result;
}
std::string missOf(Sketch& s) {
  const std::uint64_t version = s.graph.version();
  const PassResult result = s.apply("hoist_slices");
  EXPECT_EQ(result.matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
  return result.nearMisses.size() == 1 ? result.nearMisses[0].condition
                                       : std::to_string(result.nearMisses.size()) + " near misses";
}

TEST(HoistSlices, RowsAreKeptBeforeTheProduct) {
  Sketch s;
  const ValueId x = s.input("x", {2, 4, 3}), w = s.input("w", {3, 7});
  const ValueId batch = s.op("Slice", {s.op("MatMul", {x, w}), s.ints({0}), s.ints({1}), s.ints({0})});
  s.finish({s.op("Slice", {batch, s.ints({0}), s.ints({-1}), s.ints({1})})});
  EXPECT_EQ(hoist(s).matches, 2u);
  EXPECT_EQ(s.only("MatMul").id, s.graph.order().back());
}

TEST(HoistSlices, BothBranchesOfAResidualAndTheNormBehindIt) {
  Sketch s;
  const ValueId x = s.input("x", {2, 6, 4}), w = s.input("w", {4, 4}), bias = s.input("b", {4}), scale = s.input("g", {4});
  const ValueId branch = s.op("Gelu", {s.op("Add", {s.op("MatMul", {s.op("Tanh", {x}), w}), bias})});
  const ValueId norm = s.op("LayerNormalization", {s.op("Add", {x, branch}), scale, bias}, {{"axis", std::int64_t{-1}}});
  s.finish({place(s, norm, 0, 1)});
  EXPECT_EQ(hoist(s).matches, 6u);
  EXPECT_EQ(s.count("Slice"), 1u) << "both branches take equal parts of x: one Slice";
  EXPECT_EQ(s.graph.value(s.only("MatMul").output(0)).type.text(), "float32[2, 1, 4]");
  EXPECT_EQ(makerOf(s, s.graph.outputs()[0]).op, "Squeeze");
}

TEST(HoistSlices, PassesEveryPointwiseOp) {
  for (const std::string op :
       {"Relu", "Tanh", "Sigmoid", "Erf", "Gelu", "Neg", "Exp", "Abs", "Softplus", "Sqrt", "Identity"}) {
    Sketch s;
    s.finish({firstOf(s, s.op(op, {s.op("Abs", {s.input("x", {2, 6, 4})})}), 1)});
    EXPECT_EQ(hoist(s).matches, 2u) << op;
  }
  for (const std::string op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"}) {
    Sketch s;
    const ValueId x = s.op("Exp", {s.input("x", {2, 6, 4})});
    s.finish({firstOf(s, s.op(op, {x, s.op("Exp", {s.input("y", {6, 1})})}), 1)});
    EXPECT_EQ(hoist(s).matches, 3u) << op;
  }
  Sketch s;
  const ValueId x = s.input("x", {2, 6, 4}), y = s.input("y", {2, 6, 4});
  s.finish({firstOf(s, s.op("Where", {s.op("Less", {x, s.constant(0)}), x, y}), 1)});
  EXPECT_EQ(hoist(s).matches, 2u) << "the comparison too";
  Sketch m;
  const ValueId bias = m.input("b", {4});
  const NodeId gelu = m.graph.addNode("", "com.microsoft", "BiasGelu", {m.input("x", {2, 6, 4}), bias}, {"g"});
  m.finish({firstOf(m, m.graph.node(gelu).output(0), 1)});
  EXPECT_EQ(hoist(m).matches, 1u);
}

TEST(HoistSlices, ProductsAlongRowsColumnsAndBatches) {
  for (const std::int64_t axis : {0, 1, 2, 3}) {
    Sketch s;
    const ValueId a = s.input("a", {3, 2, 4, 5}), b = s.input("b", {2, 5, 6});
    s.finish({place(s, s.op("MatMul", {a, b}), -1, axis)});
    EXPECT_EQ(hoist(s).matches, 1u) << axis;
  }
  for (const std::int64_t axis : {0, 1}) {
    Sketch s;
    const ValueId a = s.input("a", {5, 4}), b = s.input("b", {6, 5}), c = s.input("c", {1, 6});
    s.finish({firstOf(s, s.op("Gemm", {a, b, c}, {{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}}), axis)});
    EXPECT_EQ(hoist(s).matches, 1u) << axis;
  }
  Sketch s;
  const NodeId fused = s.graph.addNode("", "com.microsoft", "FusedMatMul", {s.input("a", {5, 4}), s.input("b", {5, 6})},
                                       {"f"}, {{"transA", std::int64_t{1}}, {"alpha", 0.5f}});
  s.finish({firstOf(s, s.graph.node(fused).output(0), 0)});
  EXPECT_EQ(hoist(s).matches, 1u);
}

TEST(HoistSlices, AttentionOfOneQuery) {
  Sketch s;
  const ValueId x = s.input("x", {2, 5, 6}), k = s.input("k", {2, 3, 2, 5}), v = s.input("v", {2, 3, 5, 2});
  const ValueId q =
      s.op("Transpose", {s.op("Reshape", {s.op("Relu", {x}), s.ints({0, 0, 3, 2})})}, {{"perm", Ints{0, 2, 1, 3}}});
  const ValueId p = s.op("Softmax", {s.op("MatMul", {q, k})});
  const ValueId y = s.op("Transpose", {s.op("MatMul", {p, v})}, {{"perm", Ints{0, 2, 1, 3}}});
  s.finish({place(s, s.op("Reshape", {y, s.ints({0, 0, 6})}), 0, 1)});
  EXPECT_EQ(hoist(s).matches, 8u);
  EXPECT_EQ(s.graph.value(s.only("Softmax").output(0)).type.text(), "float32[2, 3, 1, 5]");
  EXPECT_EQ(s.graph.value(s.only("Relu").output(0)).type.text(), "float32[2, 1, 6]");
}

// Q9 of ort_graph.md: an equal extent behind an unequal one is not the same axis.
TEST(HoistSlices, Q9ReshapeKeepsAnAxisOnlyWhereItsSurroundingsDo) {
  Sketch s;
  const ValueId x = s.op("Relu", {s.input("x", {2, 6, 4, 1})});
  s.finish({firstOf(s, s.op("Reshape", {x, s.ints({3, 2, 4, 2})}), 2)});
  EXPECT_EQ(missOf(s), "axis 2 of [3, 2, 4, 2] is no axis of [2, 6, 4, 1]");
  Sketch kept;
  const ValueId y = kept.op("Relu", {kept.input("x", {2, 3, 4, 2})});
  kept.finish({firstOf(kept, kept.op("Reshape", {y, kept.ints({6, 4, 2})}), 1)});
  EXPECT_EQ(hoist(kept).matches, 2u);
}

// Q24: a Transpose without a permutation reverses the axes.
TEST(HoistSlices, Q24TransposeWithoutAPermutation) {
  Sketch s;
  s.finish({firstOf(s, s.op("Transpose", {s.op("Relu", {s.input("x", {2, 3, 4})})}), 0)});
  EXPECT_EQ(hoist(s).matches, 2u);
  EXPECT_EQ(s.graph.value(s.only("Relu").output(0)).type.text(), "float32[2, 3, 1]");
}

TEST(HoistSlices, ViewsAlongsideAreNotPassedAlone) {
  Sketch s;
  s.finish({firstOf(s, s.op("Transpose", {s.input("x", {2, 3})}), 0)});
  EXPECT_EQ(missOf(s), "0 near misses");
}

TEST(HoistSlices, AlongTheAxisOfANormOrSoftmaxIsANearMiss) {
  Sketch s;
  s.finish({firstOf(s, s.op("Softmax", {s.input("x", {2, 3})}), 1)});
  EXPECT_EQ(missOf(s), "it takes places of axis 1, along which Softmax works");
  Sketch n;
  const ValueId g = n.input("g", {3, 4});
  n.finish({firstOf(n, n.op("LayerNormalization", {n.input("x", {2, 3, 4}), g}, {{"axis", std::int64_t{1}}}), 2)});
  EXPECT_EQ(missOf(n), "it takes places of axis 2, along which LayerNormalization works");
  Sketch b;
  b.finish({firstOf(b, b.op("Softmax", {b.input("x", {2, 3, 4})}, {{"axis", std::int64_t{1}}}), 2)});
  EXPECT_EQ(hoist(b).matches, 1u) << "softmax works along one axis, not from it on";
}

TEST(HoistSlices, PositionsPickedByRow) {
  Sketch s;
  const ValueId x = s.input("x", {2, 5, 4}), w = s.input("w", {4, 3}), bias = s.input("b", {3});
  const ValueId y = s.op("Gelu", {s.op("Add", {s.op("MatMul", {x, w}), bias})});
  Tensor places(DType::kI64, {2, 2, 1});
  for (std::size_t i = 0; i < 4; ++i) places.as<std::int64_t>()[i] = static_cast<std::int64_t>(3 * i % 5);
  const ValueId at = s.graph.addConstant("places", std::move(places));
  s.finish({s.op("GatherND", {y, at}, {{"batch_dims", std::int64_t{1}}})});
  EXPECT_EQ(hoist(s).matches, 3u);
  EXPECT_EQ(s.graph.value(s.only("MatMul").output(0)).type.text(), "float32[2, 2, 3]");
}

TEST(HoistSlices, PositionsByRowNeedTheRowsInTheirPlace) {
  Sketch s;
  const ValueId x = s.op("Relu", {s.input("x", {5, 2, 4})});
  const ValueId at = s.graph.addConstant("places", Tensor(DType::kI64, {2, 1, 1}));
  s.finish({s.op("GatherND", {s.op("Transpose", {x}, {{"perm", Ints{1, 0, 2}}}), at}, {{"batch_dims", std::int64_t{1}}})});
  EXPECT_EQ(missOf(s), "places that differ by row would be taken of an axis that is not the second");
}

// The rows of a masked language model: the Reshape moves with the Gather.
TEST(HoistSlices, RowsBehindAReshapeTakeItWithThem) {
  for (const bool shrunken : {false, true}) {
    Sketch s;
    const ValueId x = s.input("x", {2, 5, 4}), w = s.input("w", {4, 4}), bias = s.input("b", {4});
    ValueId y = s.op("LayerNormalization",
                     {s.op("Add", {s.op("MatMul", {s.op("Cast", {x}, {{"to", std::int64_t{1}}}), w}), bias}), bias},
                     {{"axis", std::int64_t{2}}});
    y = s.op("Reshape", {y, s.ints({-1, 4})});
    const NodeId taken = s.graph.addNode("", shrunken ? "com.microsoft" : "", shrunken ? "ShrunkenGather" : "Gather",
                                         {y, s.ints({7, 0, 3})}, {"rows"}, {{"axis", std::int64_t{0}}});
    s.finish({s.graph.node(taken).output(0)});
    EXPECT_EQ(hoist(s).matches, 4u);
    EXPECT_EQ(s.graph.value(s.only("MatMul").output(0)).type.text(), "float32[3, 4]");
    EXPECT_EQ(makerOf(s, s.only("Cast").input(0)).op, shrunken ? "ShrunkenGather" : "Gather");
  }
}

TEST(HoistSlices, RowsBehindAReshapeNeedOperandsThatHaveThem) {
  Sketch s;
  const ValueId y = s.op("Add", {s.input("x", {2, 5, 4}), s.input("positions", {1, 5, 4})});
  s.finish({s.op("Gather", {s.op("Reshape", {y, s.ints({-1, 4})}), s.ints({0, 1})}, {{"axis", std::int64_t{0}}})});
  EXPECT_EQ(missOf(s), "'positions' is broadcast over some of the axes that become one");
}

TEST(HoistSlices, WhatIsReadElsewhereStays) {
  Sketch s;
  const ValueId x = s.op("Relu", {s.input("x", {4, 3})});
  s.finish({firstOf(s, x, 0), s.op("Neg", {x})});
  EXPECT_EQ(missOf(s), "'" + s.graph.value(x).name + "' is read whole too");
}

TEST(HoistSlices, AlmostAllOfTwoOperandsStays) {
  Sketch s;
  const ValueId x = s.op("Add", {s.input("x", {8, 3}), s.input("y", {8, 3})});
  s.finish({s.op("Slice", {x, s.ints({0}), s.ints({-1}), s.ints({0})})});
  EXPECT_EQ(missOf(s), "7 of 8 places of 2 operands: taking them in part costs more than it saves");
  Sketch half;
  const ValueId y = half.op("Add", {half.input("x", {8, 3}), half.input("y", {8, 3})});
  half.finish({half.op("Slice", {y, half.ints({0}), half.ints({4}), half.ints({0})})});
  EXPECT_EQ(hoist(half).matches, 1u);
}

TEST(HoistSlices, AsManyPlacesAsThereAreStay) {
  Sketch s;
  s.finish({s.op("Gather", {s.op("Relu", {s.input("x", {2, 3})}), s.ints({1, 0, 1})}, {{"axis", std::int64_t{0}}})});
  EXPECT_EQ(missOf(s), "3 of 2 places are picked, which may be as many or more");
}

TEST(HoistSlices, OperandsOfOtherExtentsAreNearMisses) {
  Sketch s;
  const ValueId x = s.op("Conv", {s.input("x", {1, 2, 5}), s.input("w", {3, 2, 1})});
  s.finish({firstOf(s, x, 2)});
  EXPECT_EQ(missOf(s), "Conv is not computed in parts");
}

// --- Dropout: Q10, masks stay what they were

std::vector<ValueId> dropped(Sketch& s, ValueId x) {
  const NodeId id =
      s.graph.addNode("", "", "Dropout", {x, s.constant(0.5), s.graph.addConstant("on", Tensor::scalar(DType::kBool, 1))},
                      {"dropped", "mask"});
  s.graph.mutableNode(id).provenance.imported = id;
  return s.graph.node(id).outputs;
}

TEST(HoistSlices, Q10PartsOfADropoutKeepItsMask) {
  for (const std::int64_t axis : {0, 1, 2}) {
    for (const bool slice : {false, true}) {
      Sketch s;
      const ValueId y = dropped(s, s.op("Relu", {s.op("Exp", {s.input("x", {3, 6, 5})})}))[0];
      s.finish(
          {slice ? s.op("Slice", {y, s.ints({-1}), s.ints({-9}), s.ints({axis}), s.ints({-2})}) : place(s, y, 1, axis)});
      EXPECT_EQ(hoist(s).matches, 3u) << axis;
      EXPECT_EQ(s.count("DropoutPart"), 1u);
      EXPECT_EQ(s.count("Dropout"), 0u);
    }
  }
  Sketch rows;
  const ValueId y = dropped(rows, rows.op("Exp", {rows.input("x", {2, 5, 4})}))[0];
  rows.finish({rows.op("Gather", {rows.op("Reshape", {y, rows.ints({-1, 4})}), rows.ints({7, 0, -3})},
                       {{"axis", std::int64_t{0}}})});
  EXPECT_EQ(hoist(rows).matches, 2u);
  Sketch pairs;
  const ValueId z = dropped(pairs, pairs.op("Exp", {pairs.input("x", {2, 5, 4})}))[0];
  Tensor places(DType::kI64, {2, 2, 1});
  for (std::size_t i = 0; i < 4; ++i) places.as<std::int64_t>()[i] = static_cast<std::int64_t>(3 * i % 5);
  pairs.finish(
      {pairs.op("GatherND", {z, pairs.graph.addConstant("places", std::move(places))}, {{"batch_dims", std::int64_t{1}}})});
  EXPECT_EQ(hoist(pairs).matches, 2u);
}

TEST(HoistSlices, ADropoutWhoseMaskIsReadStays) {
  Sketch s;
  const auto y = dropped(s, s.op("Exp", {s.input("x", {4, 3})}));
  s.finish({firstOf(s, y[0], 0), s.op("Not", {y[1]})});
  EXPECT_EQ(missOf(s), "'mask' is read too");
}

// --- one training step, with and without

std::string input(const std::string& name, const std::string& dims) {
  return "input { name: \"" + name + "\" type { tensor_type { elem_type: 1 shape { " + dims + " } } } } ";
}

TEST(HoistSlices, ATrainingStepIsTheSameWithDropoutsAndSymbolicExtents) {
  std::vector<float> w, v;
  for (int i = 0; i < 16; ++i)
    w.push_back(0.1f * static_cast<float>(i % 7) - 0.25f), v.push_back(0.2f - 0.05f * static_cast<float>(i % 5));
  const std::string graph =
      input("x", "dim { dim_param: \"batch\" } dim { dim_param: \"length\" } dim { dim_value: 4 }") +
      floats("w", {4, 4}, w) + floats("v", {4, 4}, v) + floats("half", {}, {0.5f}) +
      floats("b", {4}, {0.1f, 0.2f, -0.1f, 0}) + "initializer { name: \"on\" data_type: 9 int32_data: 1 } " +
      ints("zero", {}, {0}) + node("MatMul", "x w", "a") + node("Add", "a b", "c") +
      node("Gelu", "c", "d", textAttribute("approximate", "none")) + node("Dropout", "d half on", "e") +
      node("MatMul", "e v", "f") + node("Dropout", "f half on", "g") + node("Add", "g a", "r") +
      node("Gather", "r zero", "first", attribute("axis", 1)) + node("Mul", "first first", "sq") +
      node("ReduceMean", "sq", "loss", attribute("keepdims", 0));
  const std::map<std::string, std::string> common{{"freeze", "^half$"}};
  auto with = common, without = common;
  without["pass.hoist_slices"] = "off";
  const auto on = smallStep(graph, 20, {"w", "v", "b"}, {1, with, {}}),
             off = smallStep(graph, 20, {"w", "v", "b"}, {1, without, {}});
  ASSERT_TRUE(on) << on.error().message;
  ASSERT_TRUE(off) << off.error().message;
  EXPECT_NEAR(on->loss, off->loss, 1e-6);
  EXPECT_GT(off->loss, 0);
  for (const auto& [name, gradient] : off->gradients)
    for (std::size_t i = 0; i < gradient.size(); ++i)
      EXPECT_NEAR(on->gradients.at(name)[i], gradient[i], 1e-6) << name << ' ' << i;
}

}  // namespace
}  // namespace stepscope
