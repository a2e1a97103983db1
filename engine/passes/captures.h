// Values that subgraphs take from the graphs around them are known by name; who copies a node and so renames values tells
// the node's subgraphs here.
#pragma once

#include <functional>
#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

// How many inputs() of a subgraph are formal (Loop, Scan, SequenceMap); the rest are captured.
std::size_t formalInputs(const Node& node, const Graph& subgraph);

// Gives every value that the node's subgraphs capture, at any depth, the name that `rename` answers for the one it had.
void renameCaptures(Node& node, const std::function<std::string(const std::string&)>& rename);

}  // namespace stepscope
