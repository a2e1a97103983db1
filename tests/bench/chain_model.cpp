#include "tests/bench/chain_model.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <string>
#include <vector>

namespace stepscope {
namespace {

constexpr std::int64_t kWidth = 8, kRows = 2;

onnx::NodeProto& addNode(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
                         const std::string& output) {
  auto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(output + "/" + op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

onnx::ModelProto chain(int blocks) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("chain");
  auto& input = *graph.add_input();
  input.set_name("x");
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : {kRows, kWidth}) type.mutable_shape()->add_dim()->set_dim_value(dim);
  std::string x = "x";
  for (int i = 0; i < blocks; ++i) {
    const std::string block = fmt::format("stage{}.block{}", i / 100, i % 100);
    auto& weight = *graph.add_initializer();
    weight.set_name(block + ".weight");
    weight.set_data_type(onnx::TensorProto::FLOAT);
    weight.add_dims(kWidth);
    for (std::int64_t k = 0; k < kWidth; ++k) weight.add_float_data(0.001F * static_cast<float>(k));
    addNode(graph, "Mul", {x, block + ".weight"}, block + "/scaled");
    addNode(graph, "Tanh", {block + "/scaled"}, block + "/bent");
    addNode(graph, "Add", {x, block + "/bent"}, block + "/out");
    x = block + "/out";
  }
  auto& keep = *addNode(graph, "ReduceMean", {x}, "loss").add_attribute();
  keep.set_name("keepdims");
  keep.set_type(onnx::AttributeProto::INT);
  keep.set_i(0);
  graph.add_output()->set_name("loss");
  return model;
}

}  // namespace

void writeChain(const std::filesystem::path& path, int blocks) {
  std::ofstream file(path, std::ios::binary);
  chain(blocks).SerializeToOstream(&file);
}

}  // namespace stepscope
