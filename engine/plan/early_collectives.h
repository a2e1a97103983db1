// Collectives that run beside other instructions (options ranks.overlap, ranks.prefetch): each begins before the instruction
// EarlyCollective::begins, on a thread of its rank, and is waited for at its own place. Those of a step begin in the order
// of their places, which is the same on all ranks.
//
// What sums up gradients begins when the last of them is there, as does all that the model itself exchanges. Its place is in
// front of the first instruction that reads the result; in the backward phase at the latest where the next one stands, so
// that one bucket alone is kept longer than without. What gathers parameters begins when the one before it is done: while
// their predecessors compute. Memory that a collective reads or writes is its own from its beginning to its place.
//
// One that writes state, stands under a condition or has extents that are known at run time only stays where it is, and so
// do all of a device whose memory the host cannot reach.
#pragma once

#include <vector>

#include "engine/ops/op_registry.h"
#include "engine/plan/plan.h"

namespace stepscope {

// `nodes` with what does not gather as late as said above. `untilNext`: at the latest where the next collective stands.
std::vector<NodeId> delayCollectives(const Graph& graph, const OpRegistry& ops, const std::vector<NodeId>& nodes,
                                     bool untilNext);

// Fills plan.early, and lengthens the lifetimes of results. Needs views and in place to be decided.
void beginCollectivesEarly(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, bool sums, bool gathers);

}  // namespace stepscope
