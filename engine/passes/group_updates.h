// Puts the optimizer's updates of small parameters into one node per kind, so that they run in one parallel pass over memory
// instead of one each: a bias takes less time than starting the threads for it. A parameter that fills the threads alone
// (kGroupedElements) stays a node of its own, where it can be stepped through, undone and timed alone at no cost; that is a
// near miss with its number. Updates are grouped that have the same op, attributes, types, learning rate, step, scale and
// branch of If. LambUpdate is never grouped: it takes the norms of its tensor first. Runs when extents are known.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// From so many elements on, starting the threads costs little compared with the update (tests/bench/RESULTS.md).
inline constexpr std::int64_t kGroupedElements = 1 << 18;

Status groupUpdates(Graph& graph, PassContext& context);

}  // namespace stepscope
