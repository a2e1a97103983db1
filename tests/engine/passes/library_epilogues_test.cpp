// library_epilogues: which nodes products take on a GPU and what is left of them, where they stay and why, and that a step
// has the losses and gradients that it has without the pass.
#include <gtest/gtest.h>

#include <cmath>

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
using testing::textAttribute;

const Attributes kTanh{{"approximate", std::string("tanh")}};

struct OnGpu : Sketch {
  PassResult applied(std::map<std::string, std::string, std::less<>> options = {}) {
    return apply("library_epilogues", std::move(options), "cuda");
  }
  ValueId own(std::string name, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const ValueId y = op(std::move(name), std::move(inputs), std::move(attrs));
    graph.mutableNode(graph.value(y).producer).domain = kInternalDomain;
    return y;
  }
  ValueId product(ValueId a, ValueId b, bool turned = false) {
    return own("BatchedMatMul", {a, b}, {{turned ? "transA" : "transB", std::int64_t{1}}});
  }
  // The condition of the only near miss; nothing changed.
  std::string missOf(std::map<std::string, std::string, std::less<>> options = {}) {
    const std::uint64_t version = graph.version();
    const PassResult result = applied(std::move(options));
    EXPECT_EQ(result.matches, 0u);
    EXPECT_EQ(graph.version(), version);
    return result.nearMisses.size() == 1 ? result.nearMisses[0].condition
                                         : std::to_string(result.nearMisses.size()) + " near misses";
  }
};

TEST(LibraryEpilogues, GeluIsTakenAndWhatItIsAppliedToKeptForTheGradient) {
  OnGpu s;
  const ValueId x = s.input("x", {2, 3, 4}), w = s.input("w", {4, 8}), bias = s.input("bias", {8}),
                dy = s.input("dy", {2, 3, 8});
  const ValueId linear = s.own("Product", {x, w, bias}), y = s.op("Gelu", {linear}, kTanh);
  s.finish({y, s.own("GeluGrad", {dy, linear}, kTanh)});
  EXPECT_EQ(s.applied().matches, 1u);
  EXPECT_EQ(s.count("Gelu"), 0u);
  const Node& taken = s.only("EpilogueProduct");
  EXPECT_EQ(taken.outputs, (std::vector<ValueId>{y, linear}));
  EXPECT_EQ(taken.attrs.text("activation", ""), "Gelu");
  const std::uint64_t version = s.graph.version();
  EXPECT_EQ(s.applied().matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
}

TEST(LibraryEpilogues, WithoutAReaderNothingIsKeptInFrontOfGelu) {
  OnGpu s;
  const ValueId y = s.op("Gelu", {s.op("MatMul", {s.input("x", {3, 4}), s.input("w", {4, 8})})}, kTanh);
  s.finish({y});
  EXPECT_EQ(s.applied().matches, 1u);
  EXPECT_EQ(s.only("EpilogueProduct").outputs, (std::vector<ValueId>{y}));
}

TEST(LibraryEpilogues, TheSlopeIsTakenByTheProductOfTheGradient) {
  OnGpu s;
  const ValueId dz = s.input("dz", {3, 5}), w = s.input("w", {8, 5}), x = s.input("x", {3, 8});
  const ValueId dx = s.own("GeluGrad", {s.product(dz, w), x}, kTanh);
  s.finish({dx});
  EXPECT_EQ(s.applied().matches, 1u);
  ASSERT_EQ(s.graph.order().size(), 1u);
  const Node& taken = s.only("EpilogueProduct");
  EXPECT_EQ(taken.input(3), x);
  EXPECT_FALSE(taken.input(2).valid());
}

// The bias of a layer over [batch, tokens, channels]: the product of the weight's gradient sees rows of all tokens.
TEST(LibraryEpilogues, TheGradientOfABiasIsTakenByTheProductOfTheWeights) {
  for (const bool stored : {false, true}) {
    OnGpu s;
    const ValueId x = s.input("x", {2, 3, 4}), dy = s.input("dy", {2, 3, 5});
    const Attributes rows{{"axis", std::int64_t{2}}};
    const ValueId flatX = s.op("Flatten", {x}, rows), flatY = s.op("Flatten", {dy}, rows);
    const ValueId db = s.op("ReduceSum", {dy, s.ints({0, 1})}, {{"keepdims", std::int64_t{0}}});
    const ValueId dw = stored ? s.product(flatY, flatX, true) : s.product(flatX, flatY, true);
    s.finish({dw, db});
    EXPECT_EQ(s.applied().matches, 1u);
    EXPECT_EQ(s.count("ReduceSum"), 0u);
    const Node& taken = s.only("EpilogueProduct");
    EXPECT_EQ(taken.attrs.text("sums", ""), stored ? "a" : "b");
    EXPECT_EQ(taken.outputs, (std::vector<ValueId>{dw, db}));
  }
}

TEST(LibraryEpilogues, NearMisses) {
  {
    OnGpu s;
    s.finish({s.op("Gelu", {s.op("MatMul", {s.input("x", {3, 4}), s.input("w", {4, 6})})}, kTanh)});
    EXPECT_EQ(s.missOf(), "rows of 6 elements; expected a multiple of 8");
  }
  {
    OnGpu s;
    s.finish({s.op("Gelu", {s.op("MatMul", {s.input("x", {2, 3, 4}), s.input("w", {2, 4, 8})})}, kTanh)});
    EXPECT_EQ(s.missOf(), "it is 2 products; expected one matrix");
  }
  {
    OnGpu s;
    s.finish({s.op("Gelu", {s.op("MatMul", {s.input("x", {3, 4}), s.input("w", {4, 8})})}, kTanh)});
    EXPECT_EQ(s.missOf({{"recompute.plan", "Gelu:1:0"}}), "what is computed again is chosen, and Gelu is cheap");
  }
  {
    OnGpu s;
    const ValueId dz = s.product(s.input("dy", {3, 5}), s.input("w", {8, 5}));
    s.finish({s.own("GeluGrad", {dz, s.input("x", {3, 8})}, kTanh), dz});
    EXPECT_EQ(s.missOf(), "the product is read as it is too");
  }
  {
    OnGpu s;
    const ValueId dy = s.input("dy", {3, 5});
    s.finish({s.op("ReduceSum", {dy, s.ints({0})}, {{"keepdims", std::int64_t{0}}}), s.product(dy, s.input("w", {4, 5}))});
    EXPECT_EQ(s.missOf(), "no product reads 'dy' by rows");
  }
  {
    OnGpu s;  // the sum stands before the product, and so does its reader
    const ValueId dy = s.input("dy", {3, 5});
    const ValueId db = s.op("Neg", {s.op("ReduceSum", {dy, s.ints({0})}, {{"keepdims", std::int64_t{0}}})});
    s.finish({db, s.product(s.input("x", {3, 4}), dy, true)});
    EXPECT_EQ(s.missOf(), "the sum is read before the product is there");
  }
}

TEST(LibraryEpilogues, GeluByErfAndOtherDevicesAreLeftAlone) {
  for (const bool byErf : {true, false}) {
    Sketch s;
    const ValueId product = s.op("MatMul", {s.input("x", {3, 4}), s.input("w", {4, 8})});
    s.finish({s.op("Gelu", {product}, byErf ? Attributes{} : kTanh)});
    const std::uint64_t version = s.graph.version();
    EXPECT_EQ(s.apply("library_epilogues", {}, byErf ? "cuda" : "cpu").matches, 0u);
    EXPECT_EQ(s.graph.version(), version);
  }
}

std::vector<float> waves(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.5F * std::sin(step * static_cast<float>(i + 1));
  return values;
}

// A whole step on the emulated device: two layers with Gelu between them, in every type.
TEST(LibraryEpilogues, AStepHasTheGradientsThatItHasWithoutThem) {
  const std::string graph = floats("x", {2, 3, 4}, waves(24, 1.3F)) + floats("w1", {4, 8}, waves(32, 0.7F)) +
                            floats("b1", {8}, waves(8, 0.9F)) + floats("w2", {8, 5}, waves(40, 1.1F)) +
                            floats("b2", {5}, waves(5, 0.4F)) + node("MatMul", "x w1", "m1") + node("Add", "m1 b1", "h") +
                            node("Gelu", "h", "g", textAttribute("approximate", "tanh")) + node("MatMul", "g w2", "m2") +
                            node("Add", "m2 b2", "y") + node("Mul", "y y", "s") +
                            node("ReduceMean", "s", "loss", attribute("keepdims", 0));
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    std::vector<SmallStep> steps;
    for (const char* pass : {"on", "off"}) {
      const auto step =
          smallStep(graph, 20, {"w1", "b1", "w2", "b2"},
                    {.settings = {{"device", "emulated"}, {"precision", precision}, {"pass.library_epilogues", pass}}});
      ASSERT_TRUE(step.has_value()) << step.error().message;
      const auto taken = step->running.find("EpilogueProduct");
      EXPECT_EQ(taken != step->running.end(), pass == std::string("on")) << precision;
      if (taken != step->running.end() && precision == std::string("fp32")) EXPECT_EQ(taken->second, 4u);
      steps.push_back(*step);
    }
    const double tolerance = precision == std::string("fp32") ? 1e-6 : precision == std::string("fp16") ? 2e-3 : 2e-2;
    EXPECT_NEAR(steps[0].loss, steps[1].loss, tolerance * std::abs(steps[1].loss));
    for (const auto& [name, gradient] : steps[1].gradients)
      for (std::size_t i = 0; i < gradient.size(); ++i)
        EXPECT_NEAR(steps[0].gradients.at(name)[i], gradient[i], tolerance * (0.1 + std::abs(gradient[i])))
            << precision << " " << name << " " << i;
  }
}

}  // namespace
}  // namespace stepscope
