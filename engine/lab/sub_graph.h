// A part of a step's graph as a model of its own: its inputs are values whose contents are known.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

// The nodes from which `output` is computed, back to values of `cuts` and to what no node makes. In order.
std::vector<NodeId> nodesBetween(const Graph& graph, ValueId output, const std::set<ValueId>& cuts);

struct SubGraph {
  Graph graph;                            // output: that value; names are those of the step
  std::map<std::string, ValueId> inputs;  // by name: which value of the step feeds it
};

// `nodes` as a graph that computes `output`. What they read of other nodes, of the batch and of added state becomes an
// input; parameters become initializers with the contents that `parameter` gives, constants stay.
// Errors: kUnsupported for nodes with bodies (If, Loop) or conditions, and for values of unknown type or extents.
Result<SubGraph> extract(const Graph& graph, const std::vector<NodeId>& nodes, ValueId output,
                         const std::function<Result<Tensor>(const Value&)>& parameter);

}  // namespace stepscope
