// SPDX-License-Identifier: GPL-3.0-or-later
// The layered layout of a training step: forward on the left running down, gradient on the right running up, in common rows.
//
// Per open group, recursively:
//   rank    forward items (nodes, child groups) by longest path, pulled down to their consumers
//   mirror  a gradient node stands in the row of its anchor (GraphModel); several of one anchor are stacked, the first at
//   the
//           bottom; weight gradients and optimizer nodes in two lanes to the right, constants to the left of their consumer
//   order   barycentre sweeps; each row is placed by isotonic regression (least squares under the given order), so chains
//           are straight; edges over more than one rank pull little
//   fold    consecutive numbered groups of equal structure that are closed become one box
//   route   straight where free, around boxes where short, else a stub (edge_router.h)
// The result depends on the input alone: no hash-map order, no randomness. Earlier positions of the same nodes, when given,
// seed the order, so that a graph keeps its shape from one phase to the next.
//
// Speed: O((nodes + edges) log) ; 100,000 nodes fully opened take well under 2 s on one core. Any thread. Returns nullptr
// when cancelled.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>

#include "views/graph/open_groups.h"
#include "views/graph/scene.h"

namespace stepscope {

using NodeSeeds = std::unordered_map<int, float>;  // node id → x of an earlier layout

std::shared_ptr<const GraphScene> layoutGraph(const std::shared_ptr<const GraphModel>& model, const OpenGroups& open,
                                              const NodeSeeds& seeds, const std::atomic<bool>& cancel);

// Where the nodes of a scene stand, for the layout of the next phase.
NodeSeeds seedsOf(const GraphScene& scene);

}  // namespace stepscope
