// Weights of four bits: a frozen matrix in blocks that DequantizeLinear reads, with what is trained in front of it.
#include <gtest/gtest.h>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

constexpr int kI8 = 3, kI4 = 22;
constexpr std::int64_t kInner = 8, kOuter = 4, kBlock = 4;

// mean((x b · dequantised q)²); the same numbers in four bits and in eight.
onnx::ModelProto quantised(int type) {
  onnx::ModelProto model = smallModel();
  model.mutable_opset_import(0)->set_version(21);
  model.set_ir_version(10);
  auto& graph = *model.mutable_graph();
  graph.clear_input();
  graph.clear_output();
  graph.clear_initializer();
  graph.clear_node();
  addInput(graph, "x", {2, kInner});
  addFloats(graph, "before.weight", {kInner, kInner});
  for (float& value : *graph.mutable_initializer(0)->mutable_float_data()) value = 0.01F * value - 0.3F;
  addFloats(graph, "layer.scale", {kInner / kBlock, kOuter});
  for (float& value : *graph.mutable_initializer(1)->mutable_float_data()) value = 0.1F + 0.05F * value;
  auto& weight = *graph.add_initializer();
  weight.set_name("layer.weight");
  weight.set_data_type(type);
  weight.add_dims(kInner);
  weight.add_dims(kOuter);
  std::string bytes;
  for (int i = 0; i < kInner * kOuter; ++i) {
    const int value = i * 5 % 16 - 8;
    if (type == kI8)
      bytes.push_back(static_cast<char>(value));
    else if (i % 2 == 0)
      bytes.push_back(static_cast<char>(value & 0xF));
    else
      bytes.back() = static_cast<char>(static_cast<unsigned char>(bytes.back()) | (value & 0xF) << 4);
  }
  weight.set_raw_data(bytes);
  addNode(graph, "MatMul", {"x", "before.weight"}, {"p"}, "before");
  auto* dequantise = addNode(graph, "DequantizeLinear", {"layer.weight", "layer.scale"}, {"w"}, "layer");
  for (const auto& [name, value] : {std::pair("axis", std::int64_t{0}), std::pair("block_size", kBlock)}) {
    auto* attribute = dequantise->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  addNode(graph, "MatMul", {"p", "w"}, {"y"}, "product");
  addNode(graph, "Mul", {"y", "y"}, {"squares"}, "square");
  auto* mean = addNode(graph, "ReduceMean", {"squares"}, {"loss"}, "mean");
  auto* keep = mean->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  addOutput(graph, "loss");
  return model;
}

TEST(FourBitWeights, TrainWhatIsInFrontOfThemAsEightBitsDo) {
  const TemporaryFolder folder;
  const auto parametersOf = [&](int type, const std::string& name) {
    const auto file = folder.write(name + ".onnx", quantised(type).SerializeAsString());
    const Answer answer = run(fmt::format("train {} --loss loss --steps 3 --lr 0.05 --dump-params {}", file.string(),
                                          (folder.path() / name).string()),
                              folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    return contents(folder.path() / name);
  };
  const std::string four = parametersOf(kI4, "four"), eight = parametersOf(kI8, "eight");
  EXPECT_FALSE(four.empty());
  EXPECT_EQ(four, eight);
  const Answer inspected = run("inspect " + (folder.path() / "four.onnx").string(), folder.path());
  EXPECT_NE(inspected.text.find("a scale of weights in blocks, which are frozen"), std::string::npos) << inspected.text;
}

}  // namespace
}  // namespace stepscope::testing
