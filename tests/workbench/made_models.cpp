// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/made_models.h"

#include "tests/app/api/linear_model.h"

namespace stepscope::testing {

std::string scaledModel(const std::string& width) {
  onnx::ModelProto model = smallModel();
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.Clear();
  graph.set_name("scaled");
  addInput(graph, "x", {2, 3});
  auto* shape = graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->mutable_dim(0)->set_dim_param("batch");
  shape->mutable_dim(1)->set_dim_param(width);
  addFloats(graph, "scale", {1});
  addNode(graph, "Mul", {"x", "scale"}, {"y"}, "multiply");
  addOutput(graph, "y");
  return model.SerializeAsString();
}

std::string scriptModel() { return linearModel(); }

std::string externalModel(const std::string& location) {
  onnx::ModelProto model;
  model.ParseFromString(linearModel());
  onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_float_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = weight.add_external_data();
  entry->set_key("location");
  entry->set_value(location);
  return model.SerializeAsString();
}

}  // namespace stepscope::testing
