// A model with the op of bad_plugin.c.
#pragma once

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

// loss = mean(bad.Twice(x w)) with x [4, 3], w [3, 3]
inline std::filesystem::path writeBadModel(const TemporaryFolder& folder) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* bad = model.add_opset_import();
  bad->set_domain("bad");
  bad->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("bad");
  addInput(graph, "x", {4, 3});
  addFloats(graph, "w", {3, 3});
  addNode(graph, "MatMul", {"x", "w"}, {"product"}, "product");
  addNode(graph, "Twice", {"product"}, {"y"}, "twice")->set_domain("bad");
  auto* mean = addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  addOutput(graph, "loss");
  return folder.write("model.onnx", model.SerializeAsString());
}

}  // namespace stepscope::testing
