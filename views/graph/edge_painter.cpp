// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/edge_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "views/graph/edge_router.h"
#include "views/graph/label_places.h"

namespace stepscope {
namespace {

// It grows with the zoom, from nothing.
void paintArrow(GraphPaintContext& g, PointF2 tip, PointF2 from, const QColor& colour) {
  const double grown = g.seen(shown_from::kArrows);
  const double dx = tip.x - from.x, dy = tip.y - from.y, length = std::hypot(dx, dy);
  if (length < 0.01) return;
  const QPointF along(dx / length, dy / length), across(-along.y(), along.x());
  const QPointF end = pointOf(tip), base = end - along * 6.5 * grown;
  g.p->setPen(Qt::NoPen);
  g.p->setBrush(colour);
  const QPointF corners[3] = {end, base + across * 2.8 * grown, base - across * 2.8 * grown};
  g.p->drawConvexPolygon(corners, 3);
}

void paintEdge(GraphPaintContext& g, int index, const QPen& pen, bool arrow) {
  const SceneEdge& edge = g.scene.edges[static_cast<std::size_t>(index)];
  const PointF2* q = g.scene.points.data() + edge.firstPoint;
  QPainterPath path(pointOf(q[0]));
  for (int i = 1; i + 2 < edge.points; i += 3) path.cubicTo(pointOf(q[i]), pointOf(q[i + 1]), pointOf(q[i + 2]));
  g.p->setPen(pen);
  g.p->setBrush(Qt::NoBrush);
  g.p->drawPath(path);
  if (arrow) paintArrow(g, q[edge.points - 1], q[edge.points - 2], pen.color());
}

}  // namespace

void paintFlow(GraphPaintContext& g) {
  const bool curves = g.zoom >= shown_from::kCurves;
  const QColor plain = mixed(g.t.edge, g.t.panel, 0.45 * g.seen(shown_from::kLines) + 0.35 * g.seen(shown_from::kCurves));
  std::vector<QLineF> lines;
  std::vector<int> strong;
  g.scene.lines.query(g.visible, [&](int i) {
    const SceneEdge& edge = g.scene.edges[static_cast<std::size_t>(i)];
    const bool touches = g.selectedBox >= 0 && (edge.from == g.selectedBox || edge.to == g.selectedBox);
    if (touches) {
      strong.push_back(i);
    } else if (curves) {
      const bool faded = (g.state->emphasised != nullptr || g.state->matches != nullptr) &&
                         (g.stepsBack(g.scene.boxes[static_cast<std::size_t>(edge.from)]) ||
                          g.stepsBack(g.scene.boxes[static_cast<std::size_t>(edge.to)]));
      paintEdge(g, i, QPen(faded ? g.t.border : plain, 1), g.zoom > shown_from::kArrows);
    } else {
      const PointF2* q = g.scene.points.data() + edge.firstPoint;
      lines.emplace_back(pointOf(q[0]), pointOf(q[edge.points - 1]));
    }
    return true;
  });
  if (!lines.empty()) {
    g.p->setRenderHint(QPainter::Antialiasing, false);
    g.p->setPen(QPen(plain, 0));
    g.p->drawLines(lines.data(), static_cast<int>(lines.size()));
    g.p->setRenderHint(QPainter::Antialiasing);
  }
  for (const int i : strong) paintEdge(g, i, QPen(g.t.accent, 1.3), g.zoom > shown_from::kArrows);
  const double detail = g.seen(shown_from::kDetails);
  if (detail == 0) return;
  g.scene.lines.query(g.visible, [&](int i) {
    const SceneEdge& edge = g.scene.edges[static_cast<std::size_t>(i)];
    const auto place = shapePlace(g, edge);
    if (!place) return true;
    const SceneBox& to = g.scene.boxes[static_cast<std::size_t>(edge.to)];
    const QColor colour = g.grown(g.stepsBack(to) ? mixed(g.t.faint, g.t.panel, 0.4) : g.t.faint, g.t.panel, detail);
    g.text(g.small, colour, place->x, place->centerY() + 3.5, place->w, g.labels.shape(edge.value));
    return true;
  });
}

void paintStubs(GraphPaintContext& g, int index) {
  const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
  const StubPlaces places = stubPlaces(g, index);
  const QColor colour =
      g.grown(g.stepsBack(box) ? mixed(g.t.accent, g.t.panel, 0.3) : g.t.accent, g.t.panel, g.seen(shown_from::kDetails));
  for (const bool right : {true, false}) {
    const StubPlace& stub = right ? places.out : places.in;
    if (stub.count == 0) continue;
    const double y = stub.y, x = right ? box.at.right() : box.at.x, side = right ? 1 : -1;
    g.p->setPen(QPen(colour, 1));
    g.p->drawLine(QPointF(x, y), QPointF(x + 12 * side, y));
    g.p->setPen(Qt::NoPen);
    g.p->setBrush(colour);
    g.p->drawEllipse(QPointF(x + 13 * side, y), 2.3, 2.3);
    const BoxF words = stubTextPlace(g, index, stub, right);
    g.text(g.sub, colour, words.x, y + 3.7, words.w, stub.label);
  }
}

void paintFullEdges(GraphPaintContext& g) {
  std::vector<BoxF> taken;  // by the names of these edges
  const auto full = [&](int e, const QColor& colour, double width, bool label) {
    const SceneEdge& edge = g.scene.edges[static_cast<std::size_t>(e)];
    if (edge.kind == EdgeKind::kFlow) return;
    const auto q =
        fullCurve(g.scene.boxes[static_cast<std::size_t>(edge.from)], g.scene.boxes[static_cast<std::size_t>(edge.to)]);
    QPainterPath path(pointOf(q[0]));
    path.cubicTo(pointOf(q[1]), pointOf(q[2]), pointOf(q[3]));
    g.p->setPen(QPen(colour, width / std::min(1.0, std::max(g.zoom, 0.3))));
    g.p->setBrush(Qt::NoBrush);
    g.p->drawPath(path);
    if (g.zoom > shown_from::kArrows) paintArrow(g, q[3], q[2], colour);
    if (!label || g.zoom < shown_from::kDetails) return;
    const QString words = g.labels.stash(edge);
    const auto place = fullLabelPlace(g, q, g.sub.width(words) + 8, taken);
    if (!place) return;
    taken.push_back(*place);
    g.p->setPen(Qt::NoPen);
    g.p->setBrush(g.t.panel);
    g.p->drawRoundedRect(QRectF(place->x, place->y, place->w, place->h), 3, 3);
    g.text(g.sub, colour, place->x + 4, place->y + 10.5, place->w, words);
  };
  if (g.state->allEdges && g.zoom >= shown_from::kBoxes) {
    const QColor colour = mixed(g.t.accent, g.t.panel, 0.45);
    std::unordered_set<int> seen;
    for (const int i : g.shown) {
      const auto [begin, end] = g.scene.edgesAt(i);
      for (const int* e = begin; e != end; ++e) {
        if (seen.insert(*e).second) full(*e, colour, 0.8, false);
      }
    }
  }
  for (const int box : {g.state->hovered, g.selectedBox}) {
    if (box < 0) continue;
    const auto [begin, end] = g.scene.edgesAt(box);
    const bool few = end - begin <= 12;
    for (const int* e = begin; e != end; ++e)
      full(*e, box == g.selectedBox ? g.t.accent : mixed(g.t.accent, g.t.panel, 0.7), 1.4, few && box == g.selectedBox);
  }
}

}  // namespace stepscope
