// Phase `check`: does every node list as many inputs and outputs as its op takes?
//
// Stands before `inline`, so what a file says is judged in the opset that it is written in: OpDef::inputs and outputs hold
// for the internal opset, a table in the .cpp for older forms and for ops that a lowering takes apart (Loop, DFT …). Later
// phases index operands without asking. Nodes of unknown ops are left alone: a picture of them is worth having.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/ops/op_registry.h"

namespace stepscope {

struct OperandProblem {
  std::string where;    // label of the node
  std::string message;  // "1 input; expected 2"
};

// Appends what is wrong, in the order of the nodes, bodies of subgraphs included. A node without sinceVersion is taken to be
// of `opset`. `isCall`: nodes that call a model-local function, whose name may be that of an op.
void checkOperands(const Graph& graph, int opset, const std::function<bool(const Node&)>& isCall,
                   std::vector<OperandProblem>& problems, const OpRegistry& ops);

}  // namespace stepscope
