// Passes that take one or a few nodes for others: where they apply, what they leave and why, that a second run finds
// nothing, and that losses and gradients of a step stay.
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

// Applies the pass, and once more: it finds nothing, and touches nothing.
std::size_t matchesOf(Sketch& s, std::string_view pass) {
  const std::size_t matches = s.apply(pass).matches;
  const std::uint64_t version = s.graph.version();
  EXPECT_EQ(s.apply(pass).matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
  return matches;
}
// The one near miss of a pass that changes nothing.
std::string missOf(Sketch& s, std::string_view pass) {
  const std::uint64_t version = s.graph.version();
  const PassResult result = s.apply(pass);
  EXPECT_EQ(result.matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
  return result.nearMisses.size() == 1 ? result.nearMisses[0].condition
                                       : std::to_string(result.nearMisses.size()) + " near misses";
}

// One step with the pass and one without it: equal losses and gradients. The one with it is answered.
SmallStep sameStep(const std::string& graph, const std::string& pass, const std::vector<std::string>& parameters,
                   std::map<std::string, std::string> settings = {}) {
  settings["pass." + pass] = "on";
  const auto on = smallStep(graph, 20, parameters, {1, settings, {}});
  settings["pass." + pass] = "off";
  const auto off = smallStep(graph, 20, parameters, {1, settings, {}});
  EXPECT_TRUE(on.has_value()) << on.error().message;
  EXPECT_TRUE(off.has_value()) << off.error().message;
  if (!on || !off) return {};
  EXPECT_NEAR(on->loss, off->loss, 1e-6 * (1 + std::abs(off->loss)));
  double largest = 0;
  for (const auto& [name, gradient] : off->gradients)
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(on->gradients.at(name)[i], gradient[i], 1e-6 * (1 + std::abs(gradient[i]))) << name << ' ' << i;
      largest = std::max(largest, std::abs(gradient[i]));
    }
  EXPECT_GT(largest, 0) << "gradients that are all zero show nothing";
  return *on;
}

std::vector<float> ramp(std::size_t count, float from = -0.6f, float step = 0.17f) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(from + step * static_cast<float>(i % 11));
  return values;
}
std::string sumOfSquares(const std::string& y) {
  return node("Mul", y + " " + y, "squared") + node("ReduceSum", "squared", "loss", attribute("keepdims", 0));
}

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

// --- fuse_cross_entropy: casts

std::string labels() {
  return "initializer { name: \"labels\" data_type: 7 dims: 3 int64_data: 1 int64_data: 0 int64_data: 3 } ";
}

TEST(FuseCrossEntropy, ACastOfTheScoresIsDoneByTheLoss) {
  for (const bool logarithms : {false, true}) {
    const std::string tail =
        logarithms
            ? node("LogSoftmax", "low", "logs", attribute("axis", 1)) + node("Cast", "logs", "wide", attribute("to", 1)) +
                  node("NegativeLogLikelihoodLoss", "wide labels", "loss")
            : node("Cast", "low", "wide", attribute("to", 1)) + node("SoftmaxCrossEntropyLoss", "wide labels", "loss");
    const std::string graph =
        floats("w", {3, 4}, ramp(12)) + labels() + node("Cast", "w", "low", attribute("to", 16)) + tail;
    const auto on = smallStep(graph, 20, {"w"}),
               off = smallStep(graph, 20, {"w"}, {1, {{"pass.fuse_cross_entropy", "off"}}, {}});
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_EQ(on->running.count("SoftmaxCrossEntropyLossInternal"), 1u);
    // Logarithms are no longer rounded to eight bits on the way.
    EXPECT_NEAR(on->loss, off->loss, logarithms ? 1e-2 : 1e-6);
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(on->gradients.at("w")[i], off->gradients.at("w")[i], logarithms ? 1e-2 : 1e-3);
  }
}

// The gradients of a head whose scores are in a low type are those of all rows.
TEST(FuseCrossEntropy, ACastThatTheLossAbsorbedLeavesSparseLabelsTheirGradients) {
  const testing::TemporaryFolder data;
  onnx::TensorProto labels;
  labels.set_name("labels");
  labels.set_data_type(onnx::TensorProto::INT64);
  labels.add_dims(6);
  for (const std::int64_t label : {-100, 2, -100, -100, 0, -100}) labels.add_int64_data(label);
  data.write("input_0.pb", labels.SerializeAsString());
  std::vector<float> x, w;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(std::sin(1.3 * i)));
  for (int i = 0; i < 12; ++i) w.push_back(static_cast<float>(std::cos(0.7 * i)));
  for (const int low : {10, 16}) {
    const std::string graph =
        "input { name: \"labels\" type { tensor_type { elem_type: 7 shape { dim { dim_value: 6 } } } } } " +
        floats("x", {6, 4}, x) + floats("w", {4, 3}, w) + node("MatMul", "x w", "scores") +
        node("Cast", "scores", "low", attribute("to", low)) + node("Cast", "low", "wide", attribute("to", 1)) +
        node("SoftmaxCrossEntropyLoss", "wide labels", "loss", attribute("ignore_index", -100));
    const auto step = [&](const char* sparse) {
      return smallStep(graph, 20, {"x", "w"}, {1, {{"data", data.path()}, {"pass.sparse_labels", sparse}}, {}});
    };
    const auto on = step("on"), off = step("off");
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_EQ(on->running.count("SoftmaxCrossEntropyLossInternal"), 1u);
    EXPECT_GE(on->running.count("Gather"), 1u);
    EXPECT_NEAR(on->loss, off->loss, 1e-6);
    for (const char* name : {"x", "w"})
      for (std::size_t i = 0; i < off->gradients.at(name).size(); ++i)
        EXPECT_NEAR(on->gradients.at(name)[i], off->gradients.at(name)[i], 1e-6) << name << ' ' << i << ' ' << low;
  }
}

TEST(FuseCrossEntropy, ACastThatIsReadElsewhereStays) {
  Sketch s;
  const ValueId low = s.op("Cast", {s.input("x", {3, 4})}, {{"to", std::int64_t{10}}}),
                wide = s.op("Cast", {low}, {{"to", std::int64_t{1}}});
  s.finish({s.op("SoftmaxCrossEntropyLoss", {wide, s.ints({1, 0, 3})}), s.op("Neg", {wide})});
  EXPECT_EQ(missOf(s, "fuse_cross_entropy"), "the scores in float32 are read elsewhere too");
  Sketch w;
  const ValueId scores =
      w.op("Cast", {w.op("Cast", {w.input("x", {3, 4})}, {{"to", std::int64_t{10}}})}, {{"to", std::int64_t{1}}});
  w.finish({w.op("SoftmaxCrossEntropyLoss", {scores, w.ints({1, 0, 3}), w.input("weights", {4})})});
  EXPECT_EQ(missOf(w, "fuse_cross_entropy"), "class weights would have another type than the scores");
}

// Q15: scores that are an input of the graph.
TEST(FuseCrossEntropy, Q15ACastOfAGraphInput) {
  Sketch s;
  s.finish({s.op("SoftmaxCrossEntropyLoss",
                 {s.op("Cast", {s.input("x", {3, 4})}, {{"to", std::int64_t{1}}}), s.ints({1, 0, 3})})});
  EXPECT_EQ(missOf(s, "fuse_cross_entropy"), "0 near misses") << "a Cast of float32 to itself is none of a low type";
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

// --- fuse_loss_gradient

// Two losses of the same scores, which so have two gradients. (An elementwise one joins the sum by itself, pass
// fuse_pointwise, and that of a product too, pass fuse_epilogue.)
std::string twoLosses(int low) {
  const auto labels = [](const std::string& name, const std::string& numbers) {
    return "initializer { name: \"" + name + "\" data_type: 7 dims: 3 " + numbers + " } ";
  };
  return floats("w", {3, 4}, ramp(12)) + labels("one", "int64_data: 1 int64_data: -1 int64_data: 3") +
         labels("other", "int64_data: 2 int64_data: 2 int64_data: 0") + node("Cast", "w", "scores", attribute("to", low)) +
         node("Cast", "scores", "wide", attribute("to", 1)) + node("Cast", "scores", "wideToo", attribute("to", 1)) +
         node("SoftmaxCrossEntropyLoss", "wide one", "first", attribute("ignore_index", -1)) +
         node("SoftmaxCrossEntropyLoss", "wideToo other", "second") + node("Add", "first second", "loss");
}

TEST(FuseLossGradient, TheStepIsTheSame) {
  for (const int low : {1, 10, 16}) {
    const auto step = [&](const char* fuse) {
      return smallStep(twoLosses(low), 20, {"w"}, {1, {{"pass.fuse_loss_gradient", fuse}, {"pass.cse", "off"}}, {}});
    };
    const auto on = step("on"), off = step("off");
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_LT(on->instructions, off->instructions) << low;
    EXPECT_EQ(on->loss, off->loss);
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(on->gradients.at("w")[i], off->gradients.at("w")[i], low == 1 ? 1e-7 : low == 10 ? 1e-3 : 8e-3) << low;
  }
}

// The gradient of a loss, and a sum of it and of what `other` gives.
struct LossGradient : Sketch {
  ValueId gradient(Shape scores) {
    Shape rows = scores;
    rows.erase(rows.begin() + 1);
    const ValueId logarithms = op("LogSoftmax", {input("x", scores)}, {{"axis", std::int64_t{1}}});
    const ValueId labels = graph.addConstant("labels", Tensor(DType::kI64, *knownDims(rows)));
    const ValueId g = op("SoftmaxCrossEntropyLossGrad", {constant(0.5), logarithms, labels});
    graph.mutableNode(graph.value(g).producer).domain = std::string(kInternalDomain);
    return g;
  }
};

TEST(FuseLossGradient, EitherSideOfASum) {
  for (const bool first : {true, false}) {
    LossGradient s;
    const ValueId g = s.gradient({3, 4}), other = s.input("other", {3, 4});
    s.finish({first ? s.op("Add", {g, other}) : s.op("Sum", {other, g})});
    EXPECT_EQ(matchesOf(s, "fuse_loss_gradient"), 1u);
    EXPECT_EQ(s.count("Add") + s.count("Sum"), 0u);
    EXPECT_EQ(s.only("SoftmaxCrossEntropyLossGrad").inputs.size(), 6u);
  }
}

TEST(FuseLossGradient, NearMisses) {
  {
    LossGradient s;
    const ValueId g = s.gradient({3, 4});
    s.finish({s.op("Add", {g, s.input("row", {4})})});
    EXPECT_EQ(missOf(s, "fuse_loss_gradient"), "what is added is float32[4], the gradient of the loss float32[3, 4]");
  }
  {
    LossGradient s;
    const ValueId g = s.gradient({3, 4});
    s.finish({s.op("Add", {g, s.input("other", {3, 4})}), s.op("Neg", {g})});
    EXPECT_EQ(missOf(s, "fuse_loss_gradient"), "the gradient of the loss is read alone too");
  }
  {
    LossGradient s;
    const ValueId g = s.gradient({3, 4}), other = s.input("other", {3, 4});
    s.finish({s.op("Sum", {other, g, other})});
    EXPECT_EQ(missOf(s, "fuse_loss_gradient"), "more than two gradients of the scores are added");
  }
  {
    LossGradient s;
    const ValueId g = s.gradient({3, 4, 2});
    s.finish({s.op("Add", {g, s.input("other", {3, 4, 2})})});
    EXPECT_EQ(missOf(s, "fuse_loss_gradient"), "the classes have axes behind them");
  }
}

// --- fuse_dropout

// Linear layer whose bias is no row of a product, Dropout, residual; `whole`: the bias is as large as x.
std::string droppedSum(bool bias, bool residual, bool whole = false) {
  std::string graph =
      floats("w", {6, 5, 8}, ramp(240)) + floats("b", whole ? Ints{6, 5, 8} : Ints{8}, ramp(whole ? 240 : 8, 0.3f)) +
      floats("r", {6, 5, 8}, ramp(240, 0.1f, 0.23f)) + floats("share", {}, {0.3f}) +
      "initializer { name: 'mode' data_type: 9 int32_data: 1 }" + node("Sin", "w", "x") + node("Cos", "r", "rest") +
      (bias ? node("Add", "x b", "sum") : node("Neg", "x", "sum")) + node("Dropout", "sum share mode", "dropped") +
      (residual ? node("Add", "rest dropped", "y") : node("Mul", "rest dropped", "y"));
  return graph + sumOfSquares("y");
}

TEST(FuseDropout, TheStepHasTheSameBitsAndFewerInstructions) {
  for (const int form : {0, 1, 2, 3}) {
    const bool bias = form != 1, residual = form != 0;
    const std::string graph = droppedSum(bias, residual, form == 3);
    std::vector<std::string> trained{"w", "r"};
    if (bias) trained.push_back("b");
    const auto step = [&](const char* fuse) {
      return smallStep(graph, 20, trained, {1, {{"pass.fuse_dropout", fuse}, {"seed", "3"}, {"freeze", "^share$"}}, {}});
    };
    const auto on = step("on"), off = step("off");
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_EQ(on->running.count("BiasDropout"), 1u) << form;
    EXPECT_EQ(on->running.count("Dropout"), 0u) << form;
    EXPECT_EQ(on->loss, off->loss) << form;
    EXPECT_EQ(on->gradients, off->gradients) << form;
    EXPECT_LT(on->instructions, off->instructions) << form;
  }
}

// Attention as one node takes what a bias, a softmax and a dropout in one would take, and both products too.
TEST(FuseDropout, BiasSoftmaxDropoutIsPartOfAttention) {
  std::string graph =
      floats("q", {2, 6, 4}, ramp(48)) + floats("k", {2, 4, 6}, ramp(48, 0.2f)) +
      floats("v", {2, 6, 4}, ramp(48, 0.4f, 0.11f)) +
      "input { name: \"mask\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } dim { dim_value: 6 } } "
      "} } } " +
      floats("share", {}, {0.3f}) + "initializer { name: 'mode' data_type: 9 int32_data: 1 }" +
      node("MatMul", "q k", "products") + node("Add", "products mask", "scores") +
      node("Softmax", "scores", "p", attribute("axis", -1)) + node("Dropout", "p share mode", "dropped") +
      node("MatMul", "dropped v", "y") + sumOfSquares("y");
  const auto step = [&](const char* fuse) {
    return smallStep(graph, 20, {"q", "k", "v"},
                     {1, {{"pass.fuse_attention", fuse}, {"seed", "3"}, {"freeze", "^share$"}}, {}});
  };
  const auto on = step("on"), off = step("off");
  ASSERT_TRUE(on) << on.error().message;
  ASSERT_TRUE(off) << off.error().message;
  for (const char* gone : {"MaskedSoftmax", "Softmax", "Dropout", "SoftmaxGrad"})
    EXPECT_EQ(on->running.count(gone), 0u) << gone;
  EXPECT_LE(on->instructions + 4, off->instructions);  // forward and backward each one node
  EXPECT_NEAR(on->loss, off->loss, 1e-5 * off->loss);
  for (const auto& [name, gradient] : off->gradients)
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(on->gradients.at(name)[i], gradient[i], 1e-4) << name;
}

struct Dropped : Sketch {
  ValueId x = input("x", {2, 3, 4});
  ValueId drop(ValueId of) { return op("Dropout", {of, constant(0.5)}); }  // no mode: it hands on
};

TEST(FuseDropout, BiasResidualOrBoth) {
  for (const int form : {1, 2, 3}) {
    Dropped s;
    const ValueId before = form & 1 ? s.op("Add", {s.input("row", {4}), s.x}) : s.x, y = s.drop(before);
    s.finish({form & 2 ? s.op("Add", {y, s.input("rest", {2, 3, 4})}) : s.op("Neg", {y})});
    EXPECT_EQ(matchesOf(s, "fuse_dropout"), 1u) << form;
    EXPECT_EQ(s.count("Add") + s.count("Dropout"), 0u) << form;
  }
}

TEST(FuseDropout, NearMisses) {
  {
    Dropped s;
    s.finish({s.op("Neg", {s.drop(s.op("Add", {s.x, s.input("column", {3, 1})}))})});
    EXPECT_EQ(missOf(s, "fuse_dropout"), "the bias is broadcast along other axes than the first ones");
  }
  {
    Dropped s;
    const ValueId sum = s.op("Add", {s.x, s.input("row", {4})});
    s.finish({s.drop(sum), s.op("Neg", {sum})});
    EXPECT_EQ(missOf(s, "fuse_dropout"), "what lies between Dropout and sum is read elsewhere too");
  }
  {
    Dropped s;
    s.finish({s.op("Add", {s.drop(s.x), s.input("rest", {5, 2, 3, 4})})});
    EXPECT_EQ(missOf(s, "fuse_dropout"), "the residual has other extents than the Dropout");
  }
  {
    Dropped s;
    const NodeId dropout = s.graph.addNode("", "", "Dropout", {s.x, s.constant(0.5)}, {"y", "kept"});
    const ValueId chosen = s.op("Where", {s.graph.node(dropout).output(1), s.input("rest", {2, 3, 4}), s.x});
    s.finish({s.op("Add", {s.graph.node(dropout).output(0), chosen})});
    EXPECT_EQ(missOf(s, "fuse_dropout"), "the mask is read before the sum");
  }
}

// --- fuse_pointwise

// Losses and gradients to the bit, forward and backward, in the types that mixed precision computes in.
TEST(FusePointwise, AStepHasTheSameBitsInEveryType) {
  for (const int low : {1, 10, 16}) {
    const auto cast = [&](const std::string& from, const std::string& to, int type) {
      return node("Cast", from, to, attribute("to", type));
    };
    const std::string graph =
        floats("w", {5, 40}, ramp(200)) + floats("b", {40}, ramp(40, 0.3f)) + floats("column", {5, 1}, ramp(5)) +
        cast("w", "wl", low) + cast("b", "bl", low) + node("Add", "wl bl", "biased") + node("Gelu", "biased", "bent") +
        node("Sigmoid", "bent", "gate") + node("Mul", "bent gate", "gated") + cast("gated", "wide", 1) +
        node("Mul", "wide column", "scaled") + node("Tanh", "scaled", "y") + sumOfSquares("y");
    const auto step = [&](const char* fuse) {
      return smallStep(graph, 20, {"w", "b", "column"}, {1, {{"pass.fuse_pointwise", fuse}}, {}});
    };
    const auto on = step("on"), off = step("off");
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_GE(on->running.count("Pointwise") ? on->running.at("Pointwise") : 0, 2u);
    EXPECT_EQ(on->running.count("GeluGrad"), 0u) << low;
    EXPECT_LT(on->instructions, off->instructions);
    EXPECT_NEAR(on->loss, off->loss, 1e-6);
    for (const char* name : {"w", "b", "column"})
      for (std::size_t i = 0; i < off->gradients.at(name).size(); ++i)
        EXPECT_NEAR(on->gradients.at(name)[i], off->gradients.at(name)[i], 1e-7) << low << ' ' << name << ' ' << i;
  }
}

}  // namespace
}  // namespace stepscope
