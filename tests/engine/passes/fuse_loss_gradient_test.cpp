// Pass fuse_loss_gradient: what is added to the gradient of a loss is added by it.
#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/one_pass.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::matchesOf;
using testing::missOf;
using testing::node;
using testing::ramp;
using testing::Sketch;
using testing::smallStep;

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

}  // namespace
}  // namespace stepscope
