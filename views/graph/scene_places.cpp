// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/scene_places.h"

#include <cmath>

#include "views/graph/layout_metrics.h"

namespace stepscope {

int boxAt(const GraphScene& scene, QPointF p) {
  const auto x = static_cast<float>(p.x()), y = static_cast<float>(p.y());
  int hit = -1;
  scene.leaves.query({x, y, 0, 0}, [&](int i) {
    hit = i;
    return false;
  });
  if (hit >= 0) return hit;
  for (auto it = scene.openGroups.rbegin(); it != scene.openGroups.rend(); ++it) {
    const BoxF& b = scene.boxes[static_cast<std::size_t>(*it)].at;
    if (b.contains(x, y) && y < b.y + kHeader) return *it;
  }
  return -1;
}

int nextBox(const GraphScene& scene, int from, int dx, int dy) {
  const BoxF& a = scene.boxes[static_cast<std::size_t>(from)].at;
  constexpr float kReach = 1200;
  const BoxF area{dx < 0   ? a.x - kReach
                  : dx > 0 ? a.right()
                           : a.x - 300,
                  dy < 0   ? a.y - kReach
                  : dy > 0 ? a.bottom()
                           : a.y - 60,
                  dx != 0 ? kReach : a.w + 600, dy != 0 ? kReach : a.h + 120};
  int best = -1;
  double least = 1e300;
  scene.leaves.query(area, [&](int i) {
    const SceneBox& box = scene.boxes[static_cast<std::size_t>(i)];
    const double along = dx != 0 ? (box.at.centerX() - a.centerX()) * dx : (box.at.centerY() - a.centerY()) * dy;
    const double across = dx != 0 ? std::abs(box.at.centerY() - a.centerY()) : std::abs(box.at.centerX() - a.centerX());
    if (box.node < 0 || along < 4) return true;
    if (along + 2 * across < least) {
      least = along + 2 * across;
      best = i;
    }
    return true;
  });
  return best;
}

int nearestNode(const GraphScene& scene, const QRectF& area, QPointF p, const GraphModel& other) {
  int found = -1;
  double nearest = 1e300;
  const BoxF box{static_cast<float>(area.x()), static_cast<float>(area.y()), static_cast<float>(area.width()),
                 static_cast<float>(area.height())};
  scene.leaves.query(box, [&](int i) {
    const SceneBox& b = scene.boxes[static_cast<std::size_t>(i)];
    const snapshot::Node* node = b.node < 0 ? nullptr : scene.model->node(b.node);
    const double distance = std::hypot(b.at.centerX() - p.x(), b.at.centerY() - p.y());
    if (node != nullptr && distance < nearest && other.ofNodeId(node->id()) >= 0) {
      nearest = distance;
      found = node->id();
    }
    return true;
  });
  return found;
}

}  // namespace stepscope
