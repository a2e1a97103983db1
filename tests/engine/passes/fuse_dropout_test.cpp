// Pass fuse_dropout: bias, dropout and residual as one node.
#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/one_pass.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::Ints;
using testing::matchesOf;
using testing::missOf;
using testing::node;
using testing::ramp;
using testing::Sketch;
using testing::smallStep;
using testing::sumOfSquares;

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

}  // namespace
}  // namespace stepscope
