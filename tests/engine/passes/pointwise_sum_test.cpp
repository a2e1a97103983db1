// fuse_pointwise on chains that end in a sum: one node, the same numbers and gradients, which condition a near miss names.
#include <gtest/gtest.h>

#include "engine/passes/run_passes.h"
#include "tests/engine/passes/sketch.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::Ints;
using testing::node;
using testing::Sketch;
using testing::SmallStep;
using testing::smallStep;

constexpr std::string_view kPass = "fuse_pointwise";

struct Sums : Sketch {
  ValueId x = input("x", {4, 3, 6}), row = input("row", {6});

  ValueId own(std::string name, std::vector<ValueId> inputs) {
    const ValueId y = op(std::move(name), std::move(inputs));
    graph.mutableNode(graph.value(y).producer).domain = kInternalDomain;
    return y;
  }
  // Of a chain of two nodes.
  ValueId sum(std::string name, std::optional<Ints> axes, bool keeps = true) {
    std::vector<ValueId> inputs{op("Mul", {op("Tanh", {x}), row})};
    if (axes) inputs.push_back(ints(*axes));
    return op(std::move(name), std::move(inputs), {{"keepdims", std::int64_t{keeps}}});
  }
  // One node is left, and a second run changes nothing.
  const Node& expectOneNode() {
    EXPECT_EQ(apply(kPass).matches, 1u);
    EXPECT_EQ(graph.order().size(), 1u);
    const std::uint64_t version = graph.version();
    EXPECT_EQ(apply(kPass).matches, 0u);
    EXPECT_EQ(graph.version(), version);
    return only("PointwiseSum");
  }
  std::string missOf() {
    const PassResult result = apply(kPass);
    EXPECT_EQ(count("PointwiseSum"), 0u);
    return result.nearMisses.size() == 1 ? result.nearMisses[0].condition
                                         : std::to_string(result.nearMisses.size()) + " near misses";
  }
};

TEST(PointwiseSum, LeadingAndTrailingAxesOfAChainAreOneNode) {
  struct Case {
    std::optional<Ints> axes;
    bool keeps;
    Ints expected;
  };
  for (const std::string op : {"ReduceSum", "ReduceMean"})
    for (const Case& c : {Case{Ints{0}, true, {0}}, Case{Ints{0, 1}, false, {0, 1}}, Case{Ints{-1}, true, {2}},
                          Case{Ints{2, 1}, false, {1, 2}}}) {
      Sums s;
      s.finish({s.sum(op, c.axes, c.keeps)});
      const Node& fused = s.expectOneNode();
      EXPECT_EQ(fused.attrs.integers("axes"), c.expected);
      EXPECT_EQ(fused.attrs.integer("mean", 0), op == "ReduceMean");
    }
}

TEST(PointwiseSum, ALossIsTheSumOfItsChain) {
  for (const char* op : {"ReduceMean", "ReduceSum"}) {
    Sums s;
    s.finish({s.sum(op, std::nullopt, false)});
    EXPECT_EQ(s.expectOneNode().attrs.integers("axes"), (Ints{0, 1, 2}));
  }
}

TEST(PointwiseSum, AnAxisOfOneElementStandsWhereItLikes) {
  Sums s;
  const ValueId wide = s.input("wide", {4, 1, 6});
  s.finish({s.op("ReduceSum", {s.op("Neg", {wide}), s.ints({1, 2})}, {{"keepdims", std::int64_t{0}}})});
  s.expectOneNode();
}

// What a broadcast operand gets as its gradient, whatever the rank of that operand is.
TEST(PointwiseSum, GradientsOfBroadcastOperands) {
  for (const Ints& target : {Ints{6}, Ints{3, 6}, Ints{1, 1, 6}, Ints{4, 1, 1}, Ints{1, 3, 6}}) {
    Sums s;
    s.finish({s.own("ReduceToShape", {s.op("Mul", {s.op("Mul", {s.x, s.row}), s.x}), s.ints(target)})});
    s.expectOneNode();
  }
}

// The forms of a bias before Gelu: its gradient takes the gradient of Gelu with it, and the sum before Gelu too.
TEST(PointwiseSum, GradientOfGeluAndSumOfItsBias) {
  Sums s;
  const ValueId dy = s.input("dy", {4, 3, 6});
  s.finish({s.own("ReduceToShape", {s.own("GeluGrad", {dy, s.op("Add", {s.x, s.row})}), s.ints({6})})});
  const Node& fused = s.expectOneNode();
  EXPECT_EQ(std::get<std::vector<std::string>>(*fused.attrs.find("steps")),
            (std::vector<std::string>{"Add 0 1", "GeluGrad 2 3"}));
}

TEST(PointwiseSum, WhatIsSummedIsRoundedAsItsNodeRoundsIt) {
  for (const std::int64_t low : {10, 16}) {
    Sums s;
    const auto to = [&](ValueId of, std::int64_t type) { return s.op("Cast", {of}, {{"to", type}}); };
    const ValueId narrow = s.op("Mul", {to(s.x, low), to(s.row, low)});
    s.finish({s.own("ReduceToShape", {s.op("Exp", {narrow}), s.ints({6})}),
              s.op("ReduceMean", {to(s.op("Sigmoid", {to(s.x, low)}), 1), s.ints({1, 2})})});
    const std::vector<Tensor> before = s.run();
    EXPECT_EQ(s.apply(kPass).matches, 2u);
    EXPECT_EQ(s.count("PointwiseSum"), 2u);
    const std::vector<Tensor> after = s.run();
    for (std::size_t o = 0; o < before.size(); ++o) {
      ASSERT_EQ(after[o].dtype(), before[o].dtype());
      for (std::int64_t i = 0; i < before[o].elements(); ++i)
        EXPECT_EQ(elementAsDouble(after[o].view(), i), elementAsDouble(before[o].view(), i)) << low << ' ' << o << ' ' << i;
    }
  }
}

TEST(PointwiseSum, NearMisses) {
  {
    Sums s;
    s.finish({s.sum("ReduceSum", Ints{1})});
    EXPECT_EQ(s.missOf(), "it sums along axes between those that stay: [1] of [4, 3, 6]");
  }
  {
    Sums s;
    s.finish({s.sum("ReduceMean", Ints{0, 2})});
    EXPECT_EQ(s.missOf(), "it sums along axes between those that stay: [0, 2] of [4, 3, 6]");
  }
  {
    Sums s;
    const ValueId y = s.op("Neg", {s.x});
    s.finish({s.op("ReduceSum", {y, s.ints({0})}), s.op("Transpose", {y})});
    EXPECT_EQ(s.missOf(), "'" + s.graph.value(y).name + "' is read elsewhere too and written in any case");
  }
  {
    Sums s;
    const ValueId y = s.op("Neg", {s.x});
    s.finish({s.op("ReduceSum", {y, s.ints({0})}), y});
    EXPECT_EQ(s.missOf(), "'" + s.graph.value(y).name + "' is read elsewhere too and written in any case");
  }
  {
    Sums s;
    const ValueId image = s.input("image", {1, 16, 4, 4}), w = s.input("w", {16, 16, 1, 1});
    const ValueId y = s.op("Conv", {image, w});
    s.finish({s.op("ReduceSum", {s.op("Mul", {y, image}), s.ints({2, 3})})});
    EXPECT_EQ(s.missOf(), "beside convolutions the operands of its chain may lie in another layout");
  }
}

TEST(PointwiseSum, ASumOfWhatIsNoChainIsNoNearMiss) {
  Sums s;
  s.finish({s.op("ReduceSum", {s.x, s.ints({0})}), s.op("ReduceMax", {s.op("Neg", {s.x}), s.ints({0})}),
            s.op("ReduceSum", {s.op("Transpose", {s.x}), s.ints({0})})});
  EXPECT_EQ(s.missOf(), "0 near misses");
}

// What the report of the pass says of it: x is read once, and of the chain nothing is written.
TEST(PointwiseSum, SavesTheElementsThatWereWrittenAndReadAgain) {
  Sums s;
  s.finish({s.sum("ReduceSum", Ints{0, 1}, false)});
  PassContext context(*s.inference);
  context.extents.emplace();
  context.target.roof = {.operationsPerSecond = 1e12, .bytesPerSecond = 1e9};
  std::optional<GraphCost> saved;
  RunOptions run;
  run.end = [&](const PassRun& ran) { saved = ran.result.saved; };
  for (const Pass& pass : passesOf("fold").passes)
    if (pass.name == kPass) {
      ASSERT_TRUE(runPasses({"test", {pass}, 0}, s.graph, context, run));
    }
  ASSERT_TRUE(saved);
  // Tanh and Mul wrote 72 floats each, which Mul and the sum read; the axes are two numbers of eight bytes.
  EXPECT_EQ(saved->bytes, 4 * 72 * 4 + 2 * 8);
  EXPECT_NEAR(saved->ns, 4 * 72 * 4 + 2 * 8, 1e-6);
}

std::vector<float> ramp(std::size_t count, float from = -0.6F) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(from + 0.17F * static_cast<float>(i % 11));
  return values;
}

// A mean of squares of x * scale * row + shift: the gradients of scale, row and shift are sums along leading and trailing
// axes.
Result<SmallStep> step(const char* fuse, int low, const char* threads) {
  const auto cast = [&](const std::string& name) { return node("Cast", name, name + "l", attribute("to", low)); };
  const std::string graph =
      floats("x", {60, 40}, ramp(2400)) + floats("scale", {40}, ramp(40, 0.3F)) + floats("column", {60, 1}, ramp(60, 0.1F)) +
      floats("shift", {40}, ramp(40, -0.2F)) + cast("x") + cast("scale") + cast("column") + cast("shift") +
      node("Tanh", "xl", "bent") + node("Mul", "bent scalel", "scaled") + node("Mul", "scaled columnl", "twice") +
      node("Add", "twice shiftl", "moved") + node("Gelu", "moved", "yl") + node("Cast", "yl", "y", attribute("to", 1)) +
      node("Mul", "y y", "squared") + node("ReduceMean", "squared", "loss", attribute("keepdims", 0));
  return smallStep(graph, 20, {"x", "scale", "column", "shift"},
                   {1, {{"pass.fuse_pointwise", fuse}, {"threads", threads}}, {}});
}

TEST(PointwiseSum, AStepHasTheSameGradientsInEveryType) {
  for (const int low : {1, 10, 16}) {
    const auto on = step("on", low, "2"), off = step("off", low, "2");
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_GE(on->running.contains("PointwiseSum") ? on->running.at("PointwiseSum") : 0, 2u) << low;
    EXPECT_LT(on->instructions, off->instructions);
    EXPECT_NEAR(on->loss, off->loss, 1e-6);
    // Sums are in another order: of those in a low type the last digit may differ.
    const double rounding = low == 1 ? 1e-6 : low == 16 ? 0x1p-7 : 0x1p-10;
    for (const auto& [name, gradient] : off->gradients)
      for (std::size_t i = 0; i < gradient.size(); ++i)
        EXPECT_NEAR(on->gradients.at(name)[i], gradient[i], rounding * std::abs(gradient[i]) + 1e-8)
            << low << ' ' << name << i;
  }
}

// Losses as they are attached to an output, and as exporters write them: one instruction less, and what each row adds to
// them is told as before.
TEST(PointwiseSum, LossesAreSummedWithTheirChain) {
  const std::string x = floats("x", {6, 5}, ramp(30)) + floats("w", {5, 4}, ramp(20, 0.2F)) + node("MatMul", "x w", "p");
  const std::string target = floats("target", {6, 4}, ramp(24, -0.3F));
  const auto ofDifference = [&](const std::string& chain, const char* reduce) {
    return x + target + node("Sub", "p target", "d") + chain + node(reduce, "e", "loss", attribute("keepdims", 0));
  };
  const std::string hinge = node("Abs", "d", "a") + node("Exp", "a", "u") + node("Log", "u", "e");
  for (const std::string& graph :
       {ofDifference(node("Mul", "d d", "e"), "ReduceMean"), ofDifference(node("Abs", "d", "e"), "ReduceMean"),
        ofDifference(node("Mul", "d d", "e"), "ReduceSum"), ofDifference(hinge, "ReduceMean")}) {
    const auto run = [&](const char* fuse) {
      return smallStep(graph, 20, {"w"}, {1, {{"pass.fuse_pointwise", fuse}, {"freeze", "^(x|target)$"}}, {}});
    };
    const auto on = run("on"), off = run("off");
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_EQ(on->running.count("PointwiseSum"), 1u);
    EXPECT_EQ(on->running.count("ReduceMean") + on->running.count("ReduceSum"), 0u);
    EXPECT_LT(on->instructions, off->instructions);
    EXPECT_NEAR(on->loss, off->loss, 1e-6 * std::abs(off->loss));
    for (std::size_t i = 0; i < off->gradients.at("w").size(); ++i)
      EXPECT_NEAR(on->gradients.at("w")[i], off->gradients.at("w")[i], 1e-6) << i;
    ASSERT_EQ(off->rows.size(), 6u);
    ASSERT_EQ(on->rows.size(), 6u);
    for (std::size_t row = 0; row < 6; ++row) EXPECT_NEAR(on->rows[row], off->rows[row], 1e-6 * (1 + off->rows[row])) << row;
  }
}

TEST(PointwiseSum, OneAndTwoThreadsGiveTheSameBits) {
  for (const int low : {1, 16}) {
    const auto one = step("on", low, "1"), two = step("on", low, "2");
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_TRUE(two) << two.error().message;
    EXPECT_EQ(one->loss, two->loss);
    EXPECT_EQ(one->gradients, two->gradients) << low;
  }
}

}  // namespace
}  // namespace stepscope
