// All ranks have to meet the collectives of a step in one order, while passes decide by the batch, which differs. The order
// is read off the imported graph, which is the same on all of them.
//
// In the forward phase what the model sends itself comes in the order of the file, and parameters are gathered before their
// first use. The backward phase runs against the order of use: a parameter is gathered before its last use is
// differentiated, its gradient is sent after its first one, and what the model sends goes back at the place of its node.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/ops/op_registry.h"
#include "kernels/status.h"

namespace stepscope {

// A collective in the common order.
struct OrderedCollective {
  NodeId node;
  std::size_t use = 0;   // position in the imported graph
  bool gathers = false;  // before what is computed or differentiated there, else after it
};

// Those of the model, and what their gradients are.
struct ModelCollectives {
  std::vector<OrderedCollective> forward, backward;
  bool empty() const { return forward.empty() && backward.empty(); }
};
ModelCollectives modelCollectives(const Graph& imported, const Graph& graph, const OpRegistry& ops);

// Whether roots of collectives and ends of messages are among `ranks`. Error kInvalidArgument: the first node of which one
// is not.
Status checkRanks(const Graph& graph, int ranks);
// Adds attributes rank and ranks to nodes whose extents depend on them (AllGatherRows, ReduceScatterRows); whether there are
// any, so that types have to be inferred again.
bool tellRanks(Graph& graph, int rank, int ranks);
// Whether the ranks can share out every first axis that they have to (AllToAll, ReduceScatterRows), where its extent is
// known. Error kInvalidArgument.
Status checkShares(const Graph& graph, int ranks);

// Puts the graph in an order in which a gathering collective stands in front of its first reader and all of them in the
// common order. Where that has a circle, because a pass has joined what the imported graph does at two places, everything is
// gathered before the first gradient is sent. `ahead`: parameters are gathered before what sends the gradients of those that
// were gathered before them, so that they can come while the nodes between compute (option ranks.prefetch). Error
// kUnsupported: there is no such order.
Status orderCollectives(Graph& graph, std::vector<OrderedCollective> forward, std::vector<OrderedCollective> backward,
                        bool ahead);

}  // namespace stepscope
