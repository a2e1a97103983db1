// GraphProto and FunctionProto to Graph, with every structural problem named.
//
// Checks: value names defined once, every used name defined here or in an enclosing graph, no cycles, operators and domains
// named, attributes well formed, branches of If without formal inputs and with as many outputs as the node, tensors whose
// bytes agree with type and dims. Nodes may stand in any order in the file; the graph's order is topological and, where
// that leaves freedom, the file's.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/external_data.h"
#include "engine/onnx/payloads.h"
#include "engine/onnx/problem.h"
#include "engine/onnx/tensor_reader.h"

namespace stepscope {

// An initializer whose header is read and whose contents wait until the whole model is known to be sound.
struct PendingTensor {
  onnx::TensorProto* proto = nullptr;
  TensorHeader header;
  std::shared_ptr<Graph> graph;
  ValueId value;
};

struct GraphReadContext {
  ProblemList& problems;
  ExternalFiles& files;
  std::map<std::string, int> opsets;             // of the model, or of the function being read
  const std::set<std::string>& functionDomains;  // domains of model-local functions
  bool insideFunction = false;
  std::vector<PendingTensor>& pending;
  std::map<std::string, ValueType>& valueInfo;  // declared types, added to; the first one of a name stays
  std::size_t nodeCapacity = 0;                 // of a saved stage: Graph::nodeCapacity() when it was written, else 0
  std::map<std::int32_t, std::string> removed;  // of a saved stage: removed nodes as NodeProto bytes
  const PayloadsByTensor* payloads = nullptr;   // of the main graph's initializers; null in other graphs
};

// Both return a graph also when problems were added; it may then lack nodes and must not be used.
std::shared_ptr<Graph> readGraph(onnx::GraphProto& proto, GraphReadContext& context);
std::shared_ptr<Graph> readFunctionBody(onnx::FunctionProto& proto, GraphReadContext& context);

// "" for "ai.onnx", else the domain itself.
std::string normalisedDomain(const std::string& domain);

}  // namespace stepscope
