// Rewrites the graph so that chosen stashes are computed again.
#pragma once

#include <vector>

#include "engine/ir/graph.h"
#include "engine/recompute/stashes.h"

namespace stepscope {

// Backward nodes that read a dropped value read a clone of it, named `<value>_recompute`, which a clone of its producer
// (phase kRecompute) makes right before the first of them; that is what saves memory. A node is cloned once. Clones keep the
// imported node of the original, hence its random numbers, and leave out outputs that are next contents of a state. Forward
// readers keep the original. Returns how many nodes were cloned.
std::size_t applyRecompute(Graph& graph, const std::vector<const RecomputeCandidate*>& chosen);

}  // namespace stepscope
