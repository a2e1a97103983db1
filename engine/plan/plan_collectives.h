// The collectives of a plan and what they send: numbers that are known before anything runs.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/comm/collective_bytes.h"
#include "engine/ops/op_registry.h"
#include "engine/plan/plan.h"

namespace stepscope {

struct PlannedCollective {
  NodeId node;
  int instruction = 0;
  std::int64_t bytes = 0;      // of the whole tensors that it is about
  std::int64_t sentBytes = 0;  // by this rank to all others
  bool updateEntry = false;    // not in every micro step
  CollectiveEnds ends = {};
};

// In the order in which they run, without those that only lend their memory (Send). Of tensors whose extents are not known:
// 0 bytes.
std::vector<PlannedCollective> collectivesOf(const Graph& graph, const ExecutionPlan& plan, const OpRegistry& ops, int rank,
                                             int ranks);

}  // namespace stepscope
