// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/label_places.h"

#include <algorithm>
#include <cmath>

#include "views/graph/layout_metrics.h"

namespace stepscope {
namespace {

constexpr float kReach = 130;      // of a stub with its name
constexpr float kStub = 20;        // from the box to the name
constexpr float kShapeGap = 6;     // from a line to its shape
constexpr float kHalfLetters = 6;  // above and below the middle of a line of words
constexpr float kMostShape = kNodeWidth / 2 - 4;
constexpr float kClear = 8;    // from a name to what stands next
constexpr float kRaise = 9;    // of a stub above a line of the graph
constexpr int kSegments = 16;  // that stand for a curve

bool hasStub(const GraphScene& scene, int box, bool out) {
  const auto [begin, end] = scene.edgesAt(box);
  return std::any_of(begin, end, [&](int e) {
    const SceneEdge& edge = scene.edges[static_cast<std::size_t>(e)];
    return edge.kind != EdgeKind::kFlow && (out ? edge.from : edge.to) == box;
  });
}

// Whether a line of the graph begins or ends at the middle of that side.
bool hasLine(const GraphScene& scene, int index, bool right) {
  const BoxF& at = scene.boxes[static_cast<std::size_t>(index)].at;
  const auto [begin, end] = scene.edgesAt(index);
  return std::any_of(begin, end, [&](int e) {
    const SceneEdge& edge = scene.edges[static_cast<std::size_t>(e)];
    if (edge.kind != EdgeKind::kFlow || edge.points == 0) return false;
    const PointF2 p = scene.points[static_cast<std::size_t>(edge.firstPoint + (edge.from == index ? 0 : edge.points - 1))];
    return std::abs(p.x - (right ? at.right() : at.x)) < 2 && std::abs(p.y - at.centerY()) < kHalfLetters;
  });
}

// Where the line runs through the strip: covered(x0, x1) for each piece of it.
template <typename Covered>
void piecesWithin(const GraphScene& scene, const SceneEdge& edge, const BoxF& strip, Covered covered) {
  const PointF2* q = scene.points.data() + edge.firstPoint;
  for (int i = 0; i + 3 < edge.points; i += 3) {
    PointF2 a = q[i];
    for (int k = 1; k <= kSegments; ++k) {
      const float t = static_cast<float>(k) / kSegments, u = 1 - t;
      const float w0 = u * u * u, w1 = 3 * u * u * t, w2 = 3 * u * t * t, w3 = t * t * t;
      const PointF2 b{w0 * q[i].x + w1 * q[i + 1].x + w2 * q[i + 2].x + w3 * q[i + 3].x,
                      w0 * q[i].y + w1 * q[i + 1].y + w2 * q[i + 2].y + w3 * q[i + 3].y};
      const float low = std::min(a.y, b.y), high = std::max(a.y, b.y);
      if (high > strip.y && low < strip.bottom()) {
        const auto xAt = [&](float y) { return high - low < 0.01F ? a.x : a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y); };
        const bool level = high - low < 0.01F;
        const float x0 = level ? a.x : xAt(std::max(low, strip.y)), x1 = level ? b.x : xAt(std::min(high, strip.bottom()));
        covered(std::min(x0, x1), std::max(x0, x1));
      }
      a = b;
    }
  }
}

// How much of `area`, which begins at a box, is free up to the next thing.
double freeRoom(GraphPaintContext& g, int box, const BoxF& area, bool right) {
  double space = area.w;
  const auto keepClear = [&](const BoxF& o) {
    space = std::min(space, static_cast<double>(right ? o.x - area.x : area.right() - o.right()) - kClear);
  };
  // Twice as far: a name that comes from there takes its half.
  const BoxF far{right ? area.x : area.x - area.w, area.y, 2 * area.w, area.h};
  g.scene.leaves.query(far, [&](int other) {
    if (other == box) return true;
    const BoxF& o = g.scene.boxes[static_cast<std::size_t>(other)].at;
    keepClear(o);
    // Two that face each other have a half each.
    if (hasStub(g.scene, other, !right))
      space = std::min(space, static_cast<double>((right ? o.x - area.x : area.right() - o.right()) - kClear) / 2);
    return true;
  });
  // A shape stands to the right of its line.
  const BoxF lines{area.x - kShapeGap - kMostShape, area.y - kHalfLetters, area.w + kShapeGap + kMostShape,
                   area.h + 2 * kHalfLetters};
  g.scene.lines.query(lines, [&](int line) {
    const SceneEdge& edge = g.scene.edges[static_cast<std::size_t>(line)];
    piecesWithin(g.scene, edge, area, [&](float x0, float x1) {
      if (x1 > area.x && x0 < area.right()) keepClear({x0, area.y, x1 - x0, area.h});
    });
    const auto shape = shapePlace(g, edge);
    const bool beside = shape && shape->y < area.bottom() && shape->bottom() > area.y;
    if (beside &&
        (right ? shape->right() > area.x && shape->x < area.right() : shape->x < area.right() && shape->right() > area.x))
      keepClear(*shape);
    return true;
  });
  return std::max(space - kStub - 2, 0.0);
}

}  // namespace

std::optional<BoxF> shapePlace(GraphPaintContext& g, const SceneEdge& edge) {
  if (!edge.straight) return std::nullopt;
  const SceneBox& to = g.scene.boxes[static_cast<std::size_t>(edge.to)];
  if (to.lane == Lane::kWeight || to.lane == Lane::kOptimizer) return std::nullopt;
  const PointF2 a = g.scene.points[static_cast<std::size_t>(edge.firstPoint)],
                b = g.scene.points[static_cast<std::size_t>(edge.firstPoint + edge.points - 1)];
  // Rounded up: elided text is never wider than its room.
  const auto width = static_cast<float>(std::ceil(std::min<double>(g.small.width(g.labels.shape(edge.value)), kMostShape)));
  return BoxF{std::max(a.x, b.x) + kShapeGap, (a.y + b.y) / 2 - kHalfLetters, width, 2 * kHalfLetters};
}

std::optional<BoxF> fullLabelPlace(GraphPaintContext& g, const std::array<PointF2, 4>& curve, double width,
                                   const std::vector<BoxF>& taken) {
  constexpr float kHeight = 14, kAbove = 17;  // from the curve up to the top of the words
  const auto meets = [](const BoxF& a, const BoxF& b) {
    return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
  };
  const auto at = [&curve](float t) {
    const float u = 1 - t, w0 = u * u * u, w1 = 3 * u * u * t, w2 = 3 * u * t * t, w3 = t * t * t;
    return PointF2{w0 * curve[0].x + w1 * curve[1].x + w2 * curve[2].x + w3 * curve[3].x,
                   w0 * curve[0].y + w1 * curve[1].y + w2 * curve[2].y + w3 * curve[3].y};
  };
  for (int i = 0; i < kSegments; ++i) {
    const float away = static_cast<float>((i + 1) / 2) / kSegments;
    const PointF2 p = at(i % 2 == 0 ? 0.5F + away : 0.5F - away);
    const BoxF words{p.x - static_cast<float>(width) / 2, p.y - kAbove, static_cast<float>(width), kHeight};
    bool free = std::none_of(taken.begin(), taken.end(), [&](const BoxF& o) { return meets(words, o); });
    g.scene.leaves.query(words, [&](int box) {
      free = free && !meets(words, g.scene.boxes[static_cast<std::size_t>(box)].at);
      return free;
    });
    if (free) return words;
  }
  return std::nullopt;
}

StubPlaces stubPlaces(GraphPaintContext& g, int index) {
  StubPlaces places;
  // The stub of a selected or hovered node is drawn as a full line instead.
  if (g.state->allEdges || index == g.selectedBox || index == g.state->hovered) return places;
  const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
  bool onlyStash = true;
  const auto [begin, end] = g.scene.edgesAt(index);
  for (const int* e = begin; e != end; ++e) {
    const SceneEdge& edge = g.scene.edges[static_cast<std::size_t>(*e)];
    if (edge.kind == EdgeKind::kFlow) continue;
    const int other = edge.from == index ? edge.to : edge.from;
    if (other == g.selectedBox || other == g.state->hovered) continue;  // drawn in full
    StubPlace& stub = edge.from == index ? places.out : places.in;
    if (stub.count++ == 0) stub.edge = *e;
    if (edge.from != index) onlyStash &= edge.kind == EdgeKind::kStash;
  }
  const float raise = std::min(kRaise, box.at.h / 2 - 3);
  if (places.out.count > 0) {
    places.out.y = box.at.centerY() - (hasLine(g.scene, index, true) ? raise : 0);
    places.out.label = g.labels.stub(g.scene, places.out.edge, true, places.out.count - 1);
    places.out.width = freeRoom(g, index, {box.at.right() + 1, places.out.y - kHalfLetters, kReach, 2 * kHalfLetters}, true);
  }
  if (places.in.count > 0) {
    places.in.y = box.at.centerY() - (hasLine(g.scene, index, false) ? raise : 0);
    if (!onlyStash) {
      places.in.label = g.labels.stub(g.scene, places.in.edge, false, places.in.count - 1);
      places.in.width =
          freeRoom(g, index, {box.at.x - kReach - 1, places.in.y - kHalfLetters, kReach, 2 * kHalfLetters}, false);
    }
  }
  // Two letters and dots name nothing.
  for (StubPlace* stub : {&places.out, &places.in})
    if (g.sub.legible(stub->label, stub->width).isEmpty()) stub->width = 0;
  return places;
}

BoxF stubTextPlace(GraphPaintContext& g, int box, const StubPlace& stub, bool right) {
  const BoxF& at = g.scene.boxes[static_cast<std::size_t>(box)].at;
  const auto used = static_cast<float>(std::floor(std::min(stub.width, std::ceil(g.sub.width(stub.label)))));
  return {right ? at.right() + kStub : at.x - kStub - used, stub.y - kHalfLetters, used, 2 * kHalfLetters};
}

}  // namespace stepscope
