// Which module a node belongs to, from what exporters record and from its neighbours.
#pragma once

#include <string>
#include <string_view>

#include "engine/ir/graph.h"
#include "engine/onnx/unknown_fields.h"

namespace stepscope {

// The scopes of a TorchScript export are in the node's name: "/model/layers.0/attn/MatMul" → "model.layers.0.attn". A scope
// that repeats the one before it as its prefix replaces it: "/layer1/layer1.0/conv1/Conv" → "layer1.0.conv1".
// tf2onnx joins the names that TensorFlow Lite fused by ";": "m/a/Add;m/b/Relu" → "m", what is common to them.
// "" for names of another form.
std::string modulePathFromName(std::string_view nodeName);

// Fills module path and Python source from the metadata_props of newer exports ("namespace", "pkg.torch.onnx.name_scopes",
// "pkg.torch.onnx.stack_trace"), else from the node's name. The source is the innermost frame outside of torch itself.
void readTorchProvenance(const Metadata& metadata, std::string_view nodeName, Provenance& provenance);

// Gives nodes without a module path the longest common prefix of the paths of the nodes they are connected to, marked as
// inferred; repeated until nothing changes, so chains are filled too. Nodes between modules of no common prefix stay "".
void inferModulePaths(Graph& graph);

}  // namespace stepscope
