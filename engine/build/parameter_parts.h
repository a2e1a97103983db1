// Ranks that keep their part of the parameters alone (option ranks.shard=parameters, ZeRO 3).
//
// The initializer of a trained parameter becomes this rank's part of it (kernels/rank_part.h), one axis, under the same
// name. What reads it reads the result of an AllGather: one in front of the first reader of the forward phase, another one
// in front of the first reader of the backward phase, so that the whole parameter takes memory only while a phase needs it.
// What the forward phase makes of parameters alone (a Transpose, a Cast) is computed again for the backward phase. Some
// parameters are gathered together, as many as fit in option ranks.bucket.
//
// All ranks have to meet the collectives of a step in one order, while passes decide by the batch, which differs. The order
// is read off the imported graph: those of the forward phase by first use; those of the backward phase as it runs, against
// the order of use: a parameter is gathered before its last use is differentiated, and its gradient is sent after its first
// one.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/build/gradient_buckets.h"
#include "engine/passes/infer.h"

namespace stepscope {

// A collective of the backward phase in the common order.
struct BackwardCollective {
  NodeId node;
  std::size_t use = 0;   // position in the imported graph: what is differentiated later comes later
  bool gathers = false;  // before what is differentiated there, else after it
};

struct SharedOut {
  std::vector<NodeId> forward;               // in their order
  std::vector<BackwardCollective> backward;  // that gather
};

// `shared[i]`: trained[i] is shared out; its extents are numbers, and nothing but the optimizer writes it. `bytes`: of the
// whole parameters that are gathered together. Errors: kUnsupported, a parameter without contents.
Result<SharedOut> shareOutParameters(Graph& graph, Inference& inference, const std::vector<ValueId>& trained,
                                     const std::vector<bool>& shared, const std::vector<ParameterUse>& uses, int rank,
                                     int ranks, std::int64_t bytes);

// Nodes that run again for the backward phase (engine/recompute) read a parameter from the AllGather of that phase, where it
// stands in front of them, so that what the forward phase gathered need not be kept for them. How many operands that were.
// One that stands behind them stays there: the common order does not know what is run again.
std::size_t readGatheredAgain(Graph& graph);

// Puts the graph in an order in which a gathering collective stands in front of its first reader and all of them in the
// common order. Where that has a circle, because a pass has joined what the imported graph does at two places, everything is
// gathered before the first gradient is sent. `ahead`: parameters are gathered before what sends the gradients of those that
// were gathered before them, so that they can come while the nodes between compute (option ranks.prefetch).
void orderCollectives(Graph& graph, const std::vector<NodeId>& forward, std::vector<BackwardCollective> backward,
                      bool ahead);

}  // namespace stepscope
