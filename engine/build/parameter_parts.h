// Ranks that keep their part of the parameters alone (option ranks.shard=parameters, ZeRO 3).
//
// The initializer of a trained parameter becomes this rank's part of it (kernels/rank_part.h), one axis, under the same
// name. What reads it reads the result of an AllGather: one in front of the first reader of the forward phase, another one
// in front of the first reader of the backward phase, so that the whole parameter takes memory only while a phase needs it.
// What the forward phase makes of parameters alone (a Transpose, a Cast) is computed again for the backward phase. Some
// parameters are gathered together, as many as fit in option ranks.bucket.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/build/gradient_buckets.h"
#include "engine/build/order_collectives.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct SharedOut {
  std::vector<OrderedCollective> forward, backward;  // that gather
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

}  // namespace stepscope
