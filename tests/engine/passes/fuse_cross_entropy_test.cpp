// Pass fuse_cross_entropy: casts of the scores are done by the loss.
#include <gtest/gtest.h>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/one_pass.h"

namespace stepscope {
namespace {

using testing::attribute;
using testing::floats;
using testing::missOf;
using testing::node;
using testing::ramp;
using testing::Sketch;
using testing::smallStep;

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

}  // namespace
}  // namespace stepscope
