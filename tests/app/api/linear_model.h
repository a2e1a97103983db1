// A model of one parameter, for programs that compute their own batches.
#pragma once

#include <string>

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

// The bytes of a model: loss = mean((x · w − y)²), with x and y float32[batch, 4] and w a diagonal of `start`.
inline std::string linearModel(float start = 0.5F) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("linear");
  for (const char* name : {"x", "y"}) {
    auto& type = *graph.add_input();
    type.set_name(name);
    auto& tensor = *type.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    tensor.mutable_shape()->add_dim()->set_dim_param("batch");
    tensor.mutable_shape()->add_dim()->set_dim_value(4);
  }
  auto& weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(4);
  weight.add_dims(4);
  for (int i = 0; i < 16; ++i) weight.add_float_data(i % 5 == 0 ? start : 0);
  addNode(graph, "MatMul", {"x", "w"}, {"prediction"}, "product");
  addNode(graph, "Sub", {"prediction", "y"}, {"difference"}, "difference");
  addNode(graph, "Mul", {"difference", "difference"}, {"square"}, "square");
  auto& keep = *addNode(graph, "ReduceMean", {"square"}, {"loss"}, "mean")->add_attribute();
  keep.set_name("keepdims");
  keep.set_type(onnx::AttributeProto::INT);
  keep.set_i(0);
  addOutput(graph, "loss");
  return model.SerializeAsString();
}

}  // namespace stepscope::testing
