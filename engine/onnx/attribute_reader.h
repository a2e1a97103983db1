// AttributeProto to the typed attributes of a node.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <memory>
#include <string>

#include "engine/ir/graph.h"
#include "engine/onnx/external_data.h"
#include "engine/onnx/problem.h"

namespace stepscope {

struct AttributeContext {
  ProblemList& problems;
  ExternalFiles& files;  // tensors of attributes may lie outside too
  bool insideFunction;   // only there may an attribute refer to one of the function's
  // Reads a subgraph; null when it has problems.
  std::function<std::shared_ptr<const Graph>(onnx::GraphProto&, const std::string& where)> readSubgraph;
};

// Reads all attributes of a node into attrs, subgraphs and attributeReferences. Problems: no or repeated name, no type,
// contents of another type than declared, types the engine does not carry (sparse tensors, type protos, lists of graphs).
// A Constant with value_float, value_ints … gets `value` instead.
void readAttributes(google::protobuf::RepeatedPtrField<onnx::AttributeProto>& protos, const std::string& where,
                    const AttributeContext& context, Node& node);

// Turns value_int, value_ints, value_float, value_floats, value_string, value_strings of a Constant into `value`.
void normaliseConstant(Node& node);

}  // namespace stepscope
