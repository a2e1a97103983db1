// SPDX-License-Identifier: GPL-3.0-or-later
// Which box of a scene stands where: under a point, next in a direction, nearest to a point. Coordinates of the scene.
#pragma once

#include <QPointF>
#include <QRectF>

#include "views/graph/scene.h"

namespace stepscope {

// The innermost box; of an open group its title alone. -1 none.
int boxAt(const GraphScene& scene, QPointF p);

// The nearest node in a direction (dx, dy ∈ {−1, 0, 1}, one of them 0) from a box; -1 none.
int nextBox(const GraphScene& scene, int from, int dx, int dy);

// Id of the node in `area` that stands nearest to `p` and lives on in another model; -1 none.
int nearestNode(const GraphScene& scene, const QRectF& area, QPointF p, const GraphModel& other);

}  // namespace stepscope
