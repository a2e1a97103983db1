// Which stream each node runs on, as somebody has chosen it (option streams.partition): a JSON text,
//
//   {"streams": 3, "nodes": {"h.0/mlp/MatMul": 0, "h.0/mlp/MatMul ∂1": 1}}
//
// with the keys of nodes (engine/ir/keys.h), or their names in the graph of the plan, and numbers of streams from 0. Nodes
// that it does not name go where they would go without it; what no node of a plan is called does nothing there. What waits
// for what follows from the streams (order_streams.h), so that every partition gives the same numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/plan.h"

namespace stepscope {

struct StreamPartition {
  int streams = 0;                   // that it was made for
  std::map<std::string, int> nodes;  // by the text of a NodeKey, or by a name
};

// `what` names the text in errors: kInvalidArgument with the place in it, what was found and what was expected.
Result<StreamPartition> parseStreamPartition(std::string_view text, const std::string& what);

// The value of the option: such a text, which begins with a brace, or the name of a file. Errors: those of
// parseStreamPartition; kNotFound: no such file.
Result<StreamPartition> readStreamPartition(const std::string& value);

// Where the kernels of a plan run that are not on the host.
StreamPartition streamsOf(const ExecutionPlan& plan, const Graph& graph);
std::string streamPartitionText(const StreamPartition& partition);

// By instruction of the plan: the stream that the partition names for its node; -1: none.
struct AssignedStreams {
  std::vector<int> streams;
  std::vector<std::string> unknown;  // keys that no instruction is of
};
AssignedStreams assignStreams(const ExecutionPlan& plan, const Graph& graph, const StreamPartition& partition);

}  // namespace stepscope
