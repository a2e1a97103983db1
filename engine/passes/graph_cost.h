// What one run of all nodes of a graph moves and computes, before there is a plan: so that a pass can say what it saves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "engine/ir/graph.h"
#include "engine/ops/op_registry.h"

namespace stepscope {

// What a machine can do; 0 where that was not measured.
struct Roof {
  double operationsPerSecond = 0, bytesPerSecond = 0;
};

struct GraphCost {
  std::int64_t bytes = 0;   // read and written, every operand of a node once; views move nothing
  double flops = 0;         // multiply-adds count as two
  double ns = 0;            // sum over the nodes of the longer of both, by the roof; 0 without one
  std::size_t unknown = 0;  // nodes with an extent that is not known; they are not counted
};

// `extents`: of the symbols that shapes are written in. Nodes of branches and loop bodies are not counted.
GraphCost graphCost(const Graph& graph, const OpRegistry& ops, const std::map<std::string, Dim>& extents, const Roof& roof);

}  // namespace stepscope
