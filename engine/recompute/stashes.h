// What the forward phase keeps for the backward phase, and what would make it again: the candidates of phase `recompute`.
//
// A candidate is either what one node leaves for the backward phase (with views of it), made again by operations marked
// Recompute::kCheap from other kept values, or a block: a module that the model repeats ("…layer.3"), all of whose stashes
// are dropped but those that leave it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/op_registry.h"

namespace stepscope {

struct RecomputeCandidate {
  std::string pattern;           // ops that run again, in order, each followed by '+' ("Cast+Mul+"); "block" for a module
  std::string module;            // repeated module that it lies in ("encoder.layer.3"); empty = none
  std::vector<ValueId> dropped;  // no longer kept: values that the backward phase reads, and views between them
  std::vector<NodeId> repeated;  // forward nodes that run again, in graph order
  std::int64_t bytes = 0;        // of the memory that is no longer kept
  double flops = 0;              // of the nodes that run again; multiply-adds count as two
  std::int64_t traffic = 0;      // bytes that they read and write
};

struct RefusedStash {
  NodeId node;  // that makes the stash
  std::int64_t bytes = 0;
  std::string reason;
};

struct StashReport {
  std::vector<RecomputeCandidate> stashes;  // in the order of the forward phase
  std::vector<RecomputeCandidate> costly;  // one product, convolution … alone: taken when it is asked for, never by a budget
  std::vector<RecomputeCandidate> blocks;  // the same
  std::vector<RefusedStash> refused;       // the same; stashes below kSmallStash are left out
};

inline constexpr std::int64_t kSmallStash = 4096;  // bytes; nobody gains from less

// `graph` is specialised: every extent is a number. Values in `kept` (fetched, pinned) stay and are no candidates, nor are
// outputs of the graph and next contents of states.
StashReport findStashes(const Graph& graph, const std::vector<ValueId>& kept, const OpRegistry& ops);

}  // namespace stepscope
