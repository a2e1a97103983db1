// Pass fuse_pointwise: what becomes one node and what stays, and that the bits do.
#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/one_pass.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::node;
using testing::ramp;
using testing::Sketch;
using testing::smallStep;
using testing::sumOfSquares;

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
