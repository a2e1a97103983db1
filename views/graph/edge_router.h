// SPDX-License-Identifier: GPL-3.0-or-later
// Gives each edge of a laid-out graph its way: a straight curve where nothing is in between, a bracket next to the boxes in
// between where that is short, else a stub. Forward → gradient edges are always stubs.
//
// Needs boxes and leaves of the scene; fills kind, straight and path of the edges, and `lines`. Deterministic; O(edges ×
// boxes met).
#pragma once

#include <array>
#include <atomic>

#include "views/graph/scene.h"

namespace stepscope {

void routeEdges(GraphScene& scene, const std::atomic<bool>& cancel);

// The line of a stub edge when it is drawn full: start point and one cubic curve.
std::array<PointF2, 4> fullCurve(const SceneBox& from, const SceneBox& to);

}  // namespace stepscope
