// fuse_attention on the forms that exporters write: one node, the same numbers, the same gradients with dropout's own mask,
// and which condition a near miss names.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/passes/sketch.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope {
namespace {

using testing::Ints;
using testing::Sketch;

const Attributes kHeads{{"perm", Ints{0, 2, 1, 3}}}, kHeadsTurned{{"perm", Ints{0, 2, 3, 1}}},
    kTurned{{"perm", Ints{0, 1, 3, 2}}};

// q, k, v as linear layers leave them, [batch, rows, heads, size], and the products that attention makes of them.
struct Heads : Sketch {
  ValueId q = input("q", {2, 5, 3, 4}), k = input("k", {2, 6, 3, 4}), v = input("v", {2, 6, 3, 4});

  ValueId scores() {
    const ValueId products = op("MatMul", {op("Transpose", {q}, kHeads), op("Transpose", {k}, kHeadsTurned)});
    return op("Div", {products, constant(2)});
  }
  ValueId softmax(ValueId scores, std::int64_t axis = -1) { return op("Softmax", {scores}, {{"axis", axis}}); }
  ValueId context(ValueId probabilities) {
    return op("Transpose", {op("MatMul", {probabilities, op("Transpose", {v}, kHeads)})}, kHeads);
  }
  ValueId bools(ValueId of) { return op("Greater", {of, constant(0)}); }

  void expectOneNode() {
    EXPECT_EQ(apply("fuse_attention").matches, 1u);
    EXPECT_EQ(count("FusedAttention"), 1u);
    for (const char* gone : {"MatMul", "Softmax", "Transpose", "Div", "Mul", "Add", "Where", "IsNaN"})
      EXPECT_EQ(count(gone), 0u) << gone;
  }
  void expectMiss(std::string_view reason) {
    const PassResult result = apply("fuse_attention");
    EXPECT_EQ(result.matches, 0u);
    ASSERT_EQ(result.nearMisses.size(), 1u);
    EXPECT_NE(result.nearMisses[0].condition.find(reason), std::string::npos) << result.nearMisses[0].condition;
  }
};

TEST(FuseAttention, HeadsStayWhereTheyLie) {
  Heads s;
  s.finish({s.context(s.softmax(s.scores()))});
  s.expectOneNode();
  EXPECT_FLOAT_EQ(s.only("FusedAttention").attrs.real("scale", 0), 0.5F);
  EXPECT_EQ(s.apply("fuse_attention").matches, 0u);
}

TEST(FuseAttention, MaskThatIsAdded) {
  Heads s;
  const ValueId mask = s.input("mask", {2, 1, 1, 6});
  s.finish({s.context(s.softmax(s.op("Add", {mask, s.scores()}), 3))});
  s.expectOneNode();
}

TEST(FuseAttention, MaskOfTruthsEitherWay) {
  for (const bool invert : {false, true}) {
    Heads s;
    const ValueId mask = s.bools(s.input("mask", {5, 6})), scores = s.scores(), fill = s.constant(-3e38);
    s.finish({s.context(s.softmax(invert ? s.op("Where", {mask, fill, scores}) : s.op("Where", {mask, scores, fill})))});
    s.expectOneNode();
  }
}

// What torch.nn.functional.scaled_dot_product_attention is exported as: both operands scaled, keys turned twice, rows
// without a key made zeros.
TEST(FuseAttention, ScaledOperandsAndRowsWithoutKeys) {
  Heads s;
  const ValueId q = s.op("Mul", {s.op("Transpose", {s.q}, kHeads), s.constant(0.5)}),
                k = s.op("Mul", {s.op("Transpose", {s.op("Transpose", {s.k}, kHeads)}, kTurned), s.constant(0.25)});
  const ValueId none = s.constant(-std::numeric_limits<double>::infinity());
  const ValueId masked = s.op("Where", {s.bools(s.input("mask", {5, 1})), s.op("MatMul", {q, k}), none});
  const ValueId p = s.softmax(masked);
  s.finish({s.context(s.op("Where", {s.op("IsNaN", {p}), s.constant(0), p}))});
  s.expectOneNode();
  EXPECT_FLOAT_EQ(s.only("FusedAttention").attrs.real("scale", 0), 0.125F);
}

// Gemma bounds its scores, before the mask.
TEST(FuseAttention, BoundedScores) {
  for (const bool masked : {false, true}) {
    Heads s;
    const ValueId bounded = s.op("Mul", {s.op("Tanh", {s.op("Div", {s.scores(), s.constant(0.8)})}), s.constant(0.8)});
    const ValueId mask = s.input("mask", {5, 6});
    s.finish({s.context(s.softmax(masked ? s.op("Add", {bounded, mask}) : bounded))});
    s.expectOneNode();
    EXPECT_EQ(s.count("Tanh"), 0u);
    EXPECT_FLOAT_EQ(s.only("FusedAttention").attrs.real("softcap", 0), 0.8F);
    EXPECT_FLOAT_EQ(s.only("FusedAttention").attrs.real("scale", 0), 0.5F);
  }
}

// A window is a mask: what it drops at both ends of a tile of rows is not computed.
TEST(FuseAttention, ASlidingWindow) {
  Heads s;
  const auto range = [&](std::int64_t n) {
    Ints places;
    for (std::int64_t i = 0; i < n; ++i) places.push_back(i);
    return places;
  };
  const ValueId rows = s.op("Unsqueeze", {s.ints(range(5)), s.ints({1})}), back = s.op("Sub", {rows, s.ints(range(6))});
  const ValueId near = s.op("And", {s.op("GreaterOrEqual", {back, s.ints({0})}), s.op("Less", {back, s.ints({2})})});
  s.finish({s.context(s.softmax(s.op("Where", {near, s.scores(), s.constant(-3e38)})))});
  EXPECT_EQ(s.apply("fuse_attention").matches, 1u);
  EXPECT_EQ(s.count("FusedAttention"), 1u);
}

// Six heads of queries on three of keys, as exporters repeat them: before the transposes or behind them.
struct Groups : Heads {
  ValueId queries = input("queries", {2, 5, 6, 4});
  ValueId repeated(ValueId x, std::size_t axis, std::int64_t times = 2) {
    Ints many{1, 1, 1, 1, 1}, joined{0, 0, 6, 4};  // six rows; 0 copies the extent
    many[axis + 1] = times;
    joined[axis] = 6;
    return op("Reshape",
              {op("Expand", {op("Unsqueeze", {x, ints({static_cast<std::int64_t>(axis) + 1})}), ints(many)}), ints(joined)});
  }
  void build(bool behind, ValueId mask, std::int64_t valueTimes = 2) {
    const auto heads = [&](ValueId x, std::int64_t times) {
      return behind ? repeated(op("Transpose", {x}, kHeads), 1, times) : op("Transpose", {repeated(x, 2, times)}, kHeads);
    };
    ValueId scores = op("MatMul", {op("Transpose", {queries}, kHeads), op("Transpose", {heads(k, 2)}, kTurned)});
    if (mask) scores = op("Add", {scores, mask});
    const ValueId y = op("MatMul", {softmax(scores), heads(v, valueTimes)});
    finish({op("Transpose", {y}, kHeads)});
  }
};

TEST(FuseAttention, HeadsThatShareKeysReadThemWithoutCopies) {
  for (const bool behind : {false, true})
    for (const Shape& mask : {Shape{}, Shape{5, 6}, Shape{2, 1, 1, 6}, Shape{1, 5, 6}, Shape{2, 6, 5, 6}}) {
      Groups s;
      s.build(behind, mask.empty() ? ValueId{} : s.input("mask", mask));
      s.expectOneNode();
      EXPECT_EQ(s.count("Expand"), 0u);
      EXPECT_EQ(s.only("FusedAttention").attrs.integer("groups", 1), 2);
      EXPECT_EQ(s.apply("fuse_attention").matches, 0u);
    }
}

// What PyTorch's dynamo exporter writes: keys are turned while batch and heads are one axis.
TEST(FuseAttention, KeysThatAreTurnedInThreeAxes) {
  Groups both;
  const ValueId keys = both.repeated(both.op("Transpose", {both.k}, kHeads), 1);
  const ValueId columns = both.op(
      "Reshape", {both.op("Transpose", {both.op("Reshape", {keys, both.ints({12, 6, 4})})}, {{"perm", Ints{0, 2, 1}}}),
                  both.ints({2, 6, 4, 6})});
  const ValueId products = both.op("MatMul", {both.op("Transpose", {both.queries}, kHeads), columns});
  both.finish({both.op("MatMul", {both.softmax(products), both.repeated(both.op("Transpose", {both.v}, kHeads), 1)})});
  both.expectOneNode();
  EXPECT_EQ(both.count("Expand") + both.count("Reshape"), 0u);
  EXPECT_EQ(both.only("FusedAttention").attrs.integer("groups", 1), 2);
}

TEST(FuseAttention, OtherCopiesStayAndAreRead) {
  {
    Groups s;  // two heads of queries on each of keys, three on each of values
    s.v = s.input("one", {2, 6, 2, 4});
    s.build(true, {}, 3);
    EXPECT_EQ(s.apply("fuse_attention").matches, 1u);
    EXPECT_EQ(s.count("Expand"), 2u);
    EXPECT_EQ(s.only("FusedAttention").attrs.integer("groups", 1), 1);
  }
  {
    Groups s;  // keys whose copies a factor hides that no constant is
    const ValueId factor = s.op("Exp", {s.input("factor", {1})});
    const ValueId keys = s.op("Mul", {s.repeated(s.op("Transpose", {s.k}, kHeads), 1), factor});
    const ValueId products = s.op("MatMul", {s.op("Transpose", {s.queries}, kHeads), s.op("Transpose", {keys}, kTurned)});
    s.finish({s.op("MatMul", {s.softmax(products), s.repeated(s.op("Transpose", {s.v}, kHeads), 1)})});
    EXPECT_EQ(s.apply("fuse_attention").matches, 1u);
    EXPECT_EQ(s.count("Expand"), 2u);
    EXPECT_EQ(s.only("FusedAttention").attrs.integer("groups", 1), 1);
  }
  {
    Groups s;  // copies whose heads lie apart: 0 1 2 0 1 2
    const ValueId many = s.ints({1, 2, 1, 1, 1}), joined = s.ints({0, 6, 6, 4});
    const auto apart = [&](ValueId x) {
      const ValueId heads = s.op("Transpose", {x}, kHeads);
      return s.op("Reshape", {s.op("Expand", {s.op("Unsqueeze", {heads, s.ints({1})}), many}), joined});
    };
    const ValueId scores =
        s.op("MatMul", {s.op("Transpose", {s.queries}, kHeads), s.op("Transpose", {apart(s.k)}, kTurned)});
    s.finish({s.op("MatMul", {s.softmax(scores), apart(s.v)})});
    EXPECT_EQ(s.apply("fuse_attention").matches, 1u);  // of copies that stay as they are
    EXPECT_EQ(s.count("Expand"), 2u);
  }
}

TEST(FuseAttention, KeysThatTwoReadStayWhereOneIsNoAttention) {
  Heads s;
  const ValueId k = s.op("Transpose", {s.k}, kHeadsTurned);
  const ValueId products = s.op("MatMul", {s.op("Transpose", {s.q}, kHeads), k});
  s.finish({s.context(s.softmax(products)), s.op("Relu", {k})});
  EXPECT_EQ(s.apply("fuse_attention").matches, 1u);
  EXPECT_EQ(s.count("Transpose"), 1u);
}

TEST(FuseAttention, TwoReadersOfOneKeyAreTwoNodes) {
  Heads s;
  const ValueId k = s.op("Transpose", {s.k}, kHeadsTurned), q = s.op("Transpose", {s.q}, kHeads);
  s.finish({s.context(s.softmax(s.op("MatMul", {q, k}))), s.context(s.softmax(s.op("MatMul", {s.op("Relu", {q}), k})))});
  EXPECT_EQ(s.apply("fuse_attention").matches, 2u);
  EXPECT_EQ(s.count("Transpose"), 1u);  // of q, for Relu
}

TEST(FuseAttention, NearMisses) {
  {
    Heads s;
    s.finish({s.context(s.softmax(s.scores(), 2))});
    s.expectMiss("expected axis = last instead of 2");
  }
  {
    Heads s;
    const ValueId p = s.softmax(s.scores());
    s.finish({s.context(p), s.op("Relu", {p})});
    s.expectMiss("read elsewhere");
  }
  {
    Heads s;
    const ValueId scores = s.scores();
    s.finish({s.context(s.softmax(scores)), s.op("Relu", {scores})});
    s.expectMiss("read elsewhere");
  }
  {
    Heads s;
    const ValueId one = s.input("one", {5, 6}), other = s.input("other", {5, 6});
    s.finish({s.context(s.softmax(s.op("Add", {s.op("Add", {s.scores(), one}), other})))});
    s.expectMiss("; expected Div, MatMul, Mul or Tanh");
  }
  {
    Heads s;
    const ValueId keys = s.input("keys", {2, 1, 4, 6});
    const ValueId products = s.op("MatMul", {s.op("Transpose", {s.q}, kHeads), keys});
    s.finish({s.context(s.softmax(products))});
    s.expectMiss("broadcast");
  }
}

std::vector<float> wave(std::size_t count, double phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase));
  return values;
}

// One head of 6 rows whose q, k and v are trained; `between`: nodes that make "p" of "scores".
Result<testing::SmallStep> trained(const std::string& between, const char* fused,
                                   const std::vector<std::string>& more = {}) {
  using namespace testing;
  std::string graph;
  std::vector<std::string> parameters{"q", "k", "v"};
  for (const char* name : {"q", "k", "v"}) graph += floats(name, {1, 6, 4}, wave(24, name[0]));
  graph += floats("c", {1, 6, 4}, wave(24, 2)) + node("Transpose", "k", "kt", attribute("perm", {0, 2, 1})) +
           node("MatMul", "q kt", "scores") + between + node("MatMul", "p v", "y") + node("Mul", "y c", "yc") +
           node("ReduceSum", "yc", "loss", attribute("keepdims", 0));
  parameters.insert(parameters.end(), more.begin(), more.end());
  return smallStep(graph, 17, parameters, {1, {{"pass.fuse_attention", fused}, {"seed", "3"}, {"freeze", "^c$"}}, {"y"}});
}

void expectEqual(const testing::SmallStep& one, const testing::SmallStep& other) {
  EXPECT_NEAR(one.loss, other.loss, 1e-5);
  for (const auto& [name, gradient] : one.gradients) {
    ASSERT_EQ(other.gradients.at(name).size(), gradient.size()) << name;
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(gradient[i], other.gradients.at(name)[i], 1e-5) << name;
  }
}

TEST(FuseAttention, GradientsAreThose) {
  using namespace testing;
  const std::string between = node("Softmax", "scores", "p", attribute("axis", -1));
  const auto plain = trained(between, "off"), fused = trained(between, "on");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_LT(fused->instructions, plain->instructions);
  expectEqual(*plain, *fused);
}

TEST(FuseAttention, DropoutDrawsWhatItDrewBefore) {
  using namespace testing;
  const std::string between = node("Softmax", "scores", "s", attribute("axis", -1)) + floats("share", {}, {0.4F}) +
                              "initializer { name: 'mode' data_type: 9 int32_data: 1 }" +
                              node("Dropout", "s share mode", "p");
  const auto plain = trained(between, "off"), fused = trained(between, "on");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_LT(fused->instructions, plain->instructions);
  expectEqual(*plain, *fused);
}

// Bounded scores, and keys that four heads share, with gradients and dropout.
TEST(FuseAttention, GradientsOfGroupsAndBoundedScores) {
  using namespace testing;
  for (const bool dropped : {false, true}) {
    std::string graph = floats("q", {1, 4, 5, 4}, wave(80, 1)) + floats("k", {1, 2, 6, 4}, wave(48, 2)) +
                        floats("v", {1, 2, 6, 4}, wave(48, 3)) + floats("c", {1, 4, 5, 4}, wave(80, 4)) +
                        node("Constant", "", "cap", realAttribute("value_float", 0.75)) + ints("axis", {1}, {2}) +
                        ints("many", {5}, {1, 1, 2, 1, 1}) + ints("joined", {4}, {0, 4, 6, 4});
    for (const char* x : {"k", "v"})
      graph += node("Unsqueeze", std::string(x) + " axis", std::string(x) + "1") +
               node("Expand", std::string(x) + "1 many", std::string(x) + "2") +
               node("Reshape", std::string(x) + "2 joined", std::string(x) + "3");
    graph += node("Transpose", "k3", "kt", attribute("perm", {0, 1, 3, 2})) + node("MatMul", "q kt", "products") +
             node("Div", "products cap", "small") + node("Tanh", "small", "bent") + node("Mul", "bent cap", "scores") +
             node("Softmax", "scores", "s", attribute("axis", -1)) + floats("share", {}, {dropped ? 0.4F : 0.0F}) +
             "initializer { name: 'mode' data_type: 9 int32_data: 1 }" + node("Dropout", "s share mode", "p") +
             node("MatMul", "p v3", "y") + node("Mul", "y c", "yc") +
             node("ReduceSum", "yc", "loss", attribute("keepdims", 0));
    const auto step = [&](const char* fused) {
      return smallStep(graph, 17, {"q", "k", "v"},
                       {1, {{"pass.fuse_attention", fused}, {"seed", "3"}, {"freeze", "^(c|share)$"}}, {}});
    };
    const auto plain = step("off"), fused = step("on");
    ASSERT_TRUE(plain.has_value()) << plain.error().message;
    ASSERT_TRUE(fused.has_value()) << fused.error().message;
    EXPECT_EQ(fused->running.count("FusedAttention"), 1u);
    EXPECT_EQ(fused->running.count("Expand"), 0u);
    EXPECT_LT(fused->instructions, plain->instructions);
    expectEqual(*plain, *fused);
  }
}

// Grouped queries as PyTorch's dynamo exporter writes them: roots of a scale in the type of the queries, copies of keys and
// values, keys that are turned in three axes, rows without a key made zeros.
TEST(FuseAttention, GroupedQueriesOfDynamo) {
  using namespace testing;
  std::string graph = floats("q", {1, 4, 5, 4}, wave(80, 1)) + floats("k", {1, 2, 6, 4}, wave(48, 2)) +
                      floats("v", {1, 2, 6, 4}, wave(48, 3)) + floats("c", {1, 4, 5, 4}, wave(80, 4)) +
                      node("Constant", "", "quarter", realAttribute("value_float", 0.25)) + ints("axis", {1}, {2}) +
                      ints("many", {5}, {1, 2, 2, 6, 4}) + ints("joined", {4}, {1, 4, 6, 4}) +
                      ints("three", {3}, {-1, 6, 4}) + ints("four", {4}, {1, 4, 4, 6}) +
                      node("CastLike", "quarter q", "typed") + node("Sqrt", "typed", "root") +
                      node("Sqrt", "typed", "other") + node("Constant", "", "zero", realAttribute("value_float", 0));
  for (const std::string x : {"k", "v"})
    graph += node("Unsqueeze", x + " axis", x + "1") + node("Expand", x + "1 many", x + "2") +
             node("Identity", x + "2", x + "3") + node("Reshape", x + "3 joined", x + "4");
  graph += node("Reshape", "k4 three", "k5") + node("Transpose", "k5", "k6", attribute("perm", {0, 2, 1})) +
           node("Reshape", "k6 four", "k7") + node("Mul", "q root", "qs") + node("Mul", "k7 other", "ks") +
           node("MatMul", "qs ks", "scores") + node("Softmax", "scores", "s", attribute("axis", -1)) +
           node("IsNaN", "s", "dead") + node("Where", "dead zero s", "p") + node("MatMul", "p v4", "y") +
           node("Mul", "y c", "yc") + node("ReduceSum", "yc", "loss", attribute("keepdims", 0));
  const auto step = [&](const char* fused) {
    return smallStep(graph, 18, {"q", "k", "v"}, {1, {{"pass.fuse_attention", fused}, {"freeze", "^c$"}}, {}});
  };
  const auto plain = step("off"), fused = step("on");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_EQ(fused->running.count("FusedAttention"), 1u);
  EXPECT_EQ(fused->running.count("Expand"), 0u);
  EXPECT_LT(fused->instructions, plain->instructions);
  expectEqual(*plain, *fused);
}

// A mask that is trained needs the scores, so nothing would be saved.
TEST(FuseAttention, ATrainedMaskIsLeft) {
  using namespace testing;
  const std::string between = floats("bias", {6, 6}, wave(36, 5)) + node("Add", "scores bias", "s") +
                              node("Softmax", "s", "p", attribute("axis", -1));
  const auto plain = trained(between, "off", {"bias"}), fused = trained(between, "on", {"bias"});
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_EQ(fused->instructions, plain->instructions);
  EXPECT_TRUE(fused->gradients.contains("bias"));
  expectEqual(*plain, *fused);
}

}  // namespace
}  // namespace stepscope
