#include "engine/onnx/module_path.h"

#include <gtest/gtest.h>

#include "engine/onnx/unknown_fields.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

void addMetadata(onnx::NodeProto& node, const char* key, const char* value) {
  addUnknownMetadata(node, kNodeMetadataField, key, value);
}

TEST(ModulePath, ComesFromTorchScriptNames) {
  EXPECT_EQ(modulePathFromName("/model/layers.0/attn/MatMul"), "model.layers.0.attn");
  EXPECT_EQ(modulePathFromName("/model/layer1/layer1.0/downsample/downsample.1/Conv"), "model.layer1.0.downsample.1");
  EXPECT_EQ(modulePathFromName("/Softmax"), "");
  EXPECT_EQ(modulePathFromName("Constant_12"), "");
  EXPECT_EQ(modulePathFromName("model/dense/BiasAdd"), "");  // of no exporter that is known to mean modules by it
  // tf2onnx, of what TensorFlow Lite fused.
  EXPECT_EQ(modulePathFromName("model_1/cq/pad1d/MirrorPad;model_1/cq/pad1d/MirrorPad"), "model_1.cq.pad1d");
  EXPECT_EQ(modulePathFromName("model_1/cq/strided_slice;model_1/flatten/reshape/Reshape"), "model_1");
  EXPECT_EQ(modulePathFromName(";/;a"), "");
}

TEST(ModulePath, ComesFromTheMetadataOfNewerExports) {
  auto model = smallModel();
  auto& node = *model.mutable_graph()->mutable_node(0);
  addMetadata(node, "pkg.torch.onnx.name_scopes", "['', 'model', 'model.h.0', 'linear_3']");
  addMetadata(node, "pkg.torch.onnx.stack_trace",
              "File \"net.py\", line 22, in forward\n    y = self.attn(x)\n  File \"torch/nn/modules/linear.py\", line 125, "
              "in forward\n    return F.linear(x)");
  const auto loaded = parse(model);
  const Provenance& provenance = loaded->graph.node(loaded->graph.findNode("matmul")).provenance;
  EXPECT_EQ(provenance.modulePath, "model.h.0");
  EXPECT_EQ(provenance.sourceFile, "net.py");
  EXPECT_EQ(provenance.sourceLine, 22);
  EXPECT_EQ(provenance.sourceCode, "y = self.attn(x)");
  EXPECT_FALSE(provenance.modulePathInferred);
}

TEST(ModulePath, IsInferredFromNeighbours) {
  auto model = smallModel();
  model.mutable_graph()->mutable_node(0)->set_name("/model/a/MatMul");
  model.mutable_graph()->mutable_node(1)->set_name("Relu_3");
  addNode(*model.mutable_graph(), "Neg", {"z"}, {"n"}, "/model/b/Neg");
  const auto loaded = parse(model);
  const Provenance& provenance = loaded->graph.node(loaded->graph.findNode("Relu_3")).provenance;
  EXPECT_EQ(provenance.modulePath, "model");
  EXPECT_TRUE(provenance.modulePathInferred);
}

}  // namespace
}  // namespace stepscope::testing
