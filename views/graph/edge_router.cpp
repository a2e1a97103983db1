// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/edge_router.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace stepscope {
namespace {

constexpr float kLongest = 1000;   // units of height that a drawn edge may span
constexpr float kBracketGap = 14;  // between a bracket and the boxes it goes around
constexpr float kLaneStep = 8;     // between two brackets
constexpr float kFarthest = 300;   // sideways
constexpr float kTurn = 24;        // height of a bracket's bend
constexpr float kTurnWidth = 30;   // of an edge into a side lane
constexpr float kMargin = 3;       // clearance of lines

class Router {
 public:
  explicit Router(GraphScene& scene) : scene_(scene) {
    for (const int group : scene.openGroups) {
      const BoxF& frame = scene.boxes[static_cast<std::size_t>(group)].at;
      frames_.push_back(frame.x);
      frames_.push_back(frame.right());
    }
    std::sort(frames_.begin(), frames_.end());
    frames_.erase(std::unique(frames_.begin(), frames_.end()), frames_.end());
  }

  void route(SceneEdge& edge) {
    edge_ = &edge;
    edge.firstPoint = static_cast<int>(scene_.points.size());
    edge.points = 0;
    const SceneBox &from = box(edge.from), &to = box(edge.to);
    if (from.gradient != to.gradient) {
      edge.kind = EdgeKind::kStash;
      return;
    }
    // A learning rate reaches every update: only the way to the box below it is drawn.
    const bool control = from.kind == BoxKind::kInput && from.gradient;
    const bool below =
        std::abs(from.at.centerX() - to.at.centerX()) < 5 && std::abs(from.at.centerY() - to.at.centerY()) < 120;
    const bool drawn = control ? below && upright(from.at, to.at, false)
                       : from.lane == Lane::kAside || to.lane == Lane::kWeight || to.lane == Lane::kOptimizer
                           ? sideways(from.at, to.at)
                           : upright(from.at, to.at);
    edge.kind = drawn ? EdgeKind::kFlow : EdgeKind::kLong;
    edge.points = static_cast<int>(scene_.points.size()) - edge.firstPoint;
  }

 private:
  const SceneBox& box(int i) const { return scene_.boxes[static_cast<std::size_t>(i)]; }
  void start(float x, float y) { scene_.points.push_back({x, y}); }
  void curve(float ax, float ay, float bx, float by, float x, float y) {
    scene_.points.push_back({ax, ay});
    scene_.points.push_back({bx, by});
    scene_.points.push_back({x, y});
  }

  // To things that stand beside their source: out of the side, into the side, turning in the gap before the target's lane.
  bool sideways(const BoxF& a, const BoxF& b) {
    const bool right = b.x >= a.right() + 4;
    if (!right) return upright(a, b, false);
    const float y1 = a.centerY(), y2 = b.centerY(), gap = b.x - a.right();
    if (gap > kFarthest || std::abs(y2 - y1) > kLongest / 3) return false;
    const float turn = std::min(gap, kTurnWidth);
    const PointF2 corner{b.x - turn, y1};
    if (corner.x > a.right() + 1 && !segmentIsFree({a.right(), y1}, corner)) return false;
    if (!curveIsFree(corner, {corner.x + turn / 2, y1}, {b.x - turn / 2, y2}, {b.x, y2})) return false;
    start(a.right(), y1);
    if (corner.x > a.right() + 1) curve(a.right() + 1, y1, corner.x - 1, y1, corner.x, y1);
    curve(corner.x + turn / 2, y1, b.x - turn / 2, y2, b.x, y2);
    return true;
  }

  bool upright(const BoxF& a, const BoxF& b, bool mayGoAround = true) {
    const bool down = b.y >= a.bottom() - 1, up = b.bottom() <= a.y + 1;
    if (!down && !up) return between(a, b);
    const float x1 = a.centerX(), x2 = b.centerX();
    const float y1 = down ? a.bottom() : a.y, y2 = down ? b.y : b.bottom();
    if (std::abs(y2 - y1) > kLongest) return false;
    const float k = std::clamp(std::abs(y2 - y1) * 0.5F, 6.0F, 70.0F) * (down ? 1.0F : -1.0F);
    if (curveIsFree({x1, y1}, {x1, y1 + k}, {x2, y2 - k}, {x2, y2})) {
      start(x1, y1);
      curve(x1, y1 + k, x2, y2 - k, x2, y2);
      edge_->straight = std::abs(x1 - x2) < 5 && std::abs(y2 - y1) >= 16;
      return true;
    }
    return mayGoAround && bracket(a, b);
  }

  // Two boxes of one row.
  bool between(const BoxF& a, const BoxF& b) {
    const bool right = b.x >= a.right();
    if (!right && b.right() > a.x) return false;
    const float x1 = right ? a.right() : a.x, x2 = right ? b.x : b.right();
    if (std::abs(x2 - x1) > kFarthest) return false;
    const float k = (x2 - x1) / 2;
    if (!curveIsFree({x1, a.centerY()}, {x1 + k, a.centerY()}, {x2 - k, b.centerY()}, {x2, b.centerY()})) return false;
    start(x1, a.centerY());
    curve(x1 + k, a.centerY(), x2 - k, b.centerY(), x2, b.centerY());
    return true;
  }

  // Out of the side, along a lane beside everything in between, into the side.
  bool bracket(const BoxF& a, const BoxF& b) {
    const float y1 = a.centerY(), y2 = b.centerY();
    if (std::abs(y2 - y1) < 2 * kTurn) return false;
    const float left = lane(a, b, -1), right = lane(a, b, +1);
    const float costLeft = std::abs(left - a.x) + std::abs(left - b.x);
    const float costRight = std::abs(right - a.right()) + std::abs(right - b.right());
    const bool goLeft = costLeft <= costRight + 1;
    if (std::min(costLeft, costRight) > 2 * kFarthest) return false;
    const float side = goLeft ? -1.0F : 1.0F;
    float x = goLeft ? left : right;
    const float top = std::min(y1, y2), bottom = std::max(y1, y2);
    bool isFree = false;
    for (int shift = 0; shift < 8 && !isFree; ++shift, x += isFree ? 0 : side * kLaneStep) isFree = take(x, top, bottom);
    if (!isFree) return false;
    const float x1 = goLeft ? a.x : a.right(), x2 = goLeft ? b.x : b.right();
    const float turn = y2 > y1 ? kTurn : -kTurn;
    start(x1, y1);
    curve((x1 + x) / 2, y1, x, y1 + turn * 0.2F, x, y1 + turn);
    curve(x, y1 + turn * 1.5F, x, y2 - turn * 1.5F, x, y2 - turn);
    curve(x, y2 - turn * 0.2F, (x2 + x) / 2, y2, x2, y2);
    return true;
  }

  // x of the nearest vertical line on one side of both boxes that meets no box between them.
  float lane(const BoxF& a, const BoxF& b, int side) const {
    const float top = std::min(a.y, b.y), bottom = std::max(a.bottom(), b.bottom());
    float x = side < 0 ? std::min(a.x, b.x) - kBracketGap : std::max(a.right(), b.right()) + kBracketGap;
    for (int round = 0; round < 8; ++round) {
      float next = x;
      scene_.leaves.query({x - 6, top, 12, bottom - top}, [&](int i) {
        const BoxF& other = box(i).at;
        next = side < 0 ? std::min(next, other.x - kBracketGap) : std::max(next, other.right() + kBracketGap);
        return true;
      });
      if (next == x) return x;
      x = next;
      if (std::abs(x - a.centerX()) > 4 * kFarthest) break;
    }
    return side < 0 ? a.x - 10 * kFarthest : a.right() + 10 * kFarthest;
  }

  bool take(float x, float top, float bottom) {
    // A line along the frame of a group would be taken for the frame.
    const auto frame = std::lower_bound(frames_.begin(), frames_.end(), x - 5);
    if (frame != frames_.end() && *frame < x + 5) return false;
    auto& used = lanes_[static_cast<std::int64_t>(std::floor(x / kLaneStep))];
    for (const auto& [a, b] : used) {
      if (top < b - kTurn && bottom > a + kTurn) return false;
    }
    used.emplace_back(top, bottom);
    return true;
  }

  bool curveIsFree(PointF2 a, PointF2 b, PointF2 c, PointF2 d) const {
    if (a.x == d.x && b.x == a.x) return segmentIsFree(a, d);
    PointF2 last = a;
    constexpr int kPieces = 8;
    for (int i = 1; i <= kPieces; ++i) {
      const float t = static_cast<float>(i) / kPieces, s = 1 - t;
      const float w0 = s * s * s, w1 = 3 * s * s * t, w2 = 3 * s * t * t, w3 = t * t * t;
      const PointF2 p{w0 * a.x + w1 * b.x + w2 * c.x + w3 * d.x, w0 * a.y + w1 * b.y + w2 * c.y + w3 * d.y};
      if (!segmentIsFree(last, p)) return false;
      last = p;
    }
    return true;
  }

  bool segmentIsFree(PointF2 a, PointF2 b) const {
    const BoxF area{std::min(a.x, b.x) - kMargin, std::min(a.y, b.y), std::abs(a.x - b.x) + 2 * kMargin,
                    std::abs(a.y - b.y)};
    bool isFree = true;
    scene_.leaves.query(area, [&](int i) {
      if (i == edge_->from || i == edge_->to) return true;
      isFree = !cuts(a, b, box(i).at);
      return isFree;
    });
    return isFree;
  }

  // Liang–Barsky clipping of the segment against the box with a margin.
  static bool cuts(PointF2 a, PointF2 b, const BoxF& box) {
    float t0 = 0, t1 = 1;
    const float dx = b.x - a.x, dy = b.y - a.y;
    const float p[4] = {-dx, dx, -dy, dy};
    const float q[4] = {a.x - (box.x - kMargin), box.right() + kMargin - a.x, a.y - box.y, box.bottom() - a.y};
    for (int i = 0; i < 4; ++i) {
      if (p[i] == 0) {
        if (q[i] < 0) return false;
      } else if (const float t = q[i] / p[i]; p[i] < 0) {
        t0 = std::max(t0, t);
      } else {
        t1 = std::min(t1, t);
      }
    }
    return t0 <= t1;
  }

  GraphScene& scene_;
  SceneEdge* edge_ = nullptr;
  std::unordered_map<std::int64_t, std::vector<std::pair<float, float>>> lanes_;
  std::vector<float> frames_;  // x of the sides of open groups
};

BoxF around(const GraphScene& scene, const SceneEdge& edge) {
  if (edge.points == 0) return {0, 0, -1, -1};
  const PointF2* p = scene.points.data() + edge.firstPoint;
  BoxF box{p[0].x, p[0].y, 0, 0};
  for (int i = 1; i < edge.points; ++i) {
    const float right = std::max(box.right(), p[i].x), bottom = std::max(box.bottom(), p[i].y);
    box.x = std::min(box.x, p[i].x);
    box.y = std::min(box.y, p[i].y);
    box.w = right - box.x;
    box.h = bottom - box.y;
  }
  return box;
}

}  // namespace

void routeEdges(GraphScene& scene, const std::atomic<bool>& cancel) {
  Router router(scene);
  // Short edges first: they take the lanes next to the boxes.
  std::vector<int> order(scene.edges.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto height = [&](int e) {
    const SceneEdge& edge = scene.edges[static_cast<std::size_t>(e)];
    return std::abs(scene.boxes[static_cast<std::size_t>(edge.from)].at.centerY() -
                    scene.boxes[static_cast<std::size_t>(edge.to)].at.centerY());
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return height(a) < height(b); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % 1024 == 0 && cancel) return;
    router.route(scene.edges[static_cast<std::size_t>(order[i])]);
  }
  std::vector<BoxF> boxes;
  boxes.reserve(scene.edges.size());
  for (const SceneEdge& edge : scene.edges) boxes.push_back(around(scene, edge));
  scene.lines.build(std::move(boxes), 600, 400);
}

std::array<PointF2, 4> fullCurve(const SceneBox& from, const SceneBox& to) {
  const BoxF &a = from.at, &b = to.at;
  if (from.gradient == to.gradient) {  // along the left side, so that it is told from a stash
    const float x = std::min(a.x, b.x) - 60 - std::min(200.0F, std::abs(a.centerY() - b.centerY()) * 0.05F);
    return {PointF2{a.x, a.centerY()}, PointF2{x, a.centerY()}, PointF2{x, b.centerY()}, PointF2{b.x, b.centerY()}};
  }
  const bool right = b.centerX() > a.centerX();
  const float x1 = right ? a.right() : a.x, x2 = right ? b.x : b.right();
  const float k = (x2 - x1) * 0.45F;
  return {PointF2{x1, a.centerY()}, PointF2{x1 + k, a.centerY()}, PointF2{x2 - k, b.centerY()}, PointF2{x2, b.centerY()}};
}

}  // namespace stepscope
