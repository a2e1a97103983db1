// A model with the op of the sample cuda_noise, whose gradient draws the same numbers again.
#pragma once

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

// loss = mean(Noise(Noise(x) w) target)
inline std::filesystem::path writeNoiseModel(const TemporaryFolder& folder) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* own = model.add_opset_import();
  own->set_domain("cuda_noise");
  own->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("noise");
  addInput(graph, "x", {4, 5});
  addInput(graph, "target", {4, 6});
  addFloats(graph, "w", {5, 6});
  addNode(graph, "Noise", {"x"}, {"noisy"}, "first")->set_domain("cuda_noise");
  addNode(graph, "MatMul", {"noisy", "w"}, {"product"}, "product");
  addNode(graph, "Noise", {"product"}, {"noisier"}, "second")->set_domain("cuda_noise");
  addNode(graph, "Mul", {"noisier", "target"}, {"weighted"}, "weighted");
  auto* mean = addNode(graph, "ReduceMean", {"weighted"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  addOutput(graph, "loss");
  return folder.write("noise.onnx", model.SerializeAsString());
}

}  // namespace stepscope::testing
