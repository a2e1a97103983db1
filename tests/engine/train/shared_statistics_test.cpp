// Two BatchNormalization nodes over the same running statistics, as a layer that is called twice is written.
#include <gtest/gtest.h>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope {
namespace {

using testing::addFloats;
using testing::addInput;
using testing::addNode;
using testing::addOutput;

onnx::AttributeProto& attribute(onnx::NodeProto& node, const char* name, onnx::AttributeProto::AttributeType type) {
  auto& made = *node.add_attribute();
  made.set_name(name);
  made.set_type(type);
  return made;
}

void addNorm(onnx::GraphProto& graph, const std::string& x, const std::string& y) {
  auto& node =
      *addNode(graph, "BatchNormalization", {x, "scale", "bias", "mean", "variance"}, {y, y + "_mean", y + "_variance"});
  attribute(node, "training_mode", onnx::AttributeProto::INT).set_i(1);
  attribute(node, "momentum", onnx::AttributeProto::FLOAT).set_f(0.75F);
}

// y = norm(x), loss = mean(norm(y + 3)²)
onnx::ModelProto calledTwice() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("twice");
  addInput(graph, "x", {8, 2});
  for (const auto& [name, value] : {std::pair{"scale", 1.0F}, {"bias", 0.0F}, {"mean", 2.0F}, {"variance", 1.0F}}) {
    auto& tensor = *addFloats(graph, name, {2});
    for (int i = 0; i < 2; ++i) tensor.set_float_data(i, value);
  }
  auto& three = *addFloats(graph, "three", {1});
  three.set_float_data(0, 3.0F);
  addNorm(graph, "x", "y");
  addNode(graph, "Add", {"y", "three"}, {"z"});
  addNorm(graph, "z", "w");
  addNode(graph, "Mul", {"w", "w"}, {"squares"});
  auto& keep = attribute(*addNode(graph, "ReduceMean", {"squares"}, {"loss"}), "keepdims", onnx::AttributeProto::INT);
  keep.set_i(0);
  addOutput(graph, "loss");
  return model;
}

TEST(SharedStatistics, OfALayerThatIsCalledTwiceTakeInBothCalls) {
  testing::TemporaryFolder folder;
  const auto path = folder.write("twice.onnx", calledTwice().SerializeAsString());
  auto session = Session::open(path, {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  for (const auto& [name, value] : std::map<std::string, std::string>{{"freeze", "three"}, {"lr", "0"}})
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  ASSERT_TRUE(built.has_value()) << built.error().message;
  const auto stepped = (*session)->step();
  ASSERT_TRUE(stepped.has_value()) << stepped.error().message;

  const Tensor& x = (*session)->stepper().batch().arrays.at("x");
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    double sum = 0;
    for (std::int64_t row = 0; row < 8; ++row) sum += elementAsDouble(x.view(), 2 * row + channel);
    const double first = 0.75 * 2 + 0.25 * sum / 8, both = 0.75 * first + 0.25 * 3;  // the mean of y + 3 is 3
    EXPECT_NEAR(elementAsDouble((*session)->trained().named(true).at("mean"), channel), both, 1e-5) << channel;
  }
}

}  // namespace
}  // namespace stepscope
