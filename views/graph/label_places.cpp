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

// How much of `area`, which begins at a box, is free up to the next thing.
double freeRoom(GraphPaintContext& g, int box, const BoxF& area, bool right) {
  double space = area.w;
  const auto keepClear = [&](const BoxF& o) { space = std::min(space, static_cast<double>(right ? o.x - area.x : area.right() - o.right()) - 8); };
  g.scene.leaves.query(area, [&](int other) {
    if (other != box) keepClear(g.scene.boxes[static_cast<std::size_t>(other)].at);
    return true;
  });
  // A shape stands to the right of its line.
  const BoxF lines{area.x - kShapeGap - kMostShape, area.y - kHalfLetters, area.w + kShapeGap + kMostShape, area.h + 2 * kHalfLetters};
  g.scene.lines.query(lines, [&](int line) {
    const auto shape = shapePlace(g, g.scene.edges[static_cast<std::size_t>(line)]);
    const bool beside = shape && shape->y < area.bottom() && shape->bottom() > area.y;
    if (beside && (right ? shape->right() > area.x && shape->x < area.right() : shape->x < area.right() && shape->right() > area.x)) keepClear(*shape);
    return true;
  });
  return std::max(space - kStub - 2, 0.0);
}

}  // namespace

std::optional<BoxF> shapePlace(GraphPaintContext& g, const SceneEdge& edge) {
  if (!edge.straight) return std::nullopt;
  const SceneBox& to = g.scene.boxes[static_cast<std::size_t>(edge.to)];
  if (to.lane == Lane::kWeight || to.lane == Lane::kOptimizer) return std::nullopt;
  const PointF2 a = g.scene.points[static_cast<std::size_t>(edge.firstPoint)], b = g.scene.points[static_cast<std::size_t>(edge.firstPoint + edge.points - 1)];
  // Rounded up: elided text is never wider than its room.
  const auto width = static_cast<float>(std::ceil(std::min<double>(g.small.width(g.labels.shape(edge.value)), kMostShape)));
  return BoxF{std::max(a.x, b.x) + kShapeGap, (a.y + b.y) / 2 - kHalfLetters, width, 2 * kHalfLetters};
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
  const float y = box.at.centerY();
  if (places.out.count > 0) {
    places.out.label = g.labels.stub(g.scene, places.out.edge, true, places.out.count - 1);
    places.out.width = freeRoom(g, index, {box.at.right() + 1, y - kHalfLetters, kReach, 2 * kHalfLetters}, true);
  }
  if (places.in.count > 0 && !onlyStash) {
    places.in.label = g.labels.stub(g.scene, places.in.edge, false, places.in.count - 1);
    places.in.width = freeRoom(g, index, {box.at.x - kReach - 1, y - kHalfLetters, kReach, 2 * kHalfLetters}, false);
  }
  // Two letters with dots between them name nothing.
  for (StubPlace* stub : {&places.out, &places.in})
    if (g.sub.legible(stub->label, stub->width).isEmpty()) stub->width = 0;
  return places;
}

BoxF stubTextPlace(GraphPaintContext& g, int box, const StubPlace& stub, bool right) {
  const BoxF& at = g.scene.boxes[static_cast<std::size_t>(box)].at;
  const auto used = static_cast<float>(std::floor(std::min(stub.width, std::ceil(g.sub.width(stub.label)))));
  return {right ? at.right() + kStub : at.x - kStub - used, at.centerY() - kHalfLetters, used, 2 * kHalfLetters};
}

}  // namespace stepscope
