// Phase `check`: does every node of a standard op carry the attributes that its op needs, and none that it does not know?
//
// Stands before `inline`, so what a file says is judged in the opset that it is written in. The table in the .cpp has the
// attributes of all ONNX ops over opsets 7 to 25, and says which are required up to which opset. A missing one is an error;
// one that no opset knows is a warning, since exporters leave marks of their own on nodes, which change nothing. Nodes of
// other domains and of unknown ops are left alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

struct AttributeFinding {
  std::string where;    // label of the node
  std::string message;  // "attribute 'to' is missing; Cast needs it", "attribute 'axes' is not one of Softmax; known: axis"
  bool missing = false;
};

// Appends what is wrong, in the order of the nodes, bodies of subgraphs included. A node without sinceVersion is taken to be
// of `opset`. `isCall`: nodes that call a model-local function, whose name may be that of an op.
void checkAttributes(const Graph& graph, int opset, const std::function<bool(const Node&)>& isCall,
                     std::vector<AttributeFinding>& findings);

}  // namespace stepscope
