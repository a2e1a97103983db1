// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_painter.h"

#include <QLinearGradient>
#include <algorithm>
#include <cmath>

#include "views/graph/box_painter.h"
#include "views/graph/edge_painter.h"
#include "views/graph/layout_metrics.h"

namespace stepscope {
namespace {

constexpr double kLeastTitle = 70;  // units of a title that stays in view

void paintGroups(GraphPaintContext& g) {
  for (const int index : g.scene.openGroups) {
    const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
    if (!box.at.meets(g.visible) || box.at.h * g.zoom < 6) continue;
    g.p->setPen(QPen(index == g.state->hovered ? g.t.edge : g.t.border, g.zoom < 1 ? 0 : 1));
    g.p->setBrush(Qt::NoBrush);
    g.p->drawRoundedRect(rectOf(box.at), 6, 6);
  }
}

// Over the lines: none runs through a title.
void paintGroupTitles(GraphPaintContext& g) {
  const double seen = g.seen(shown_from::kTitles);
  if (seen == 0) return;
  for (const int index : g.scene.openGroups) {
    const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
    if (!box.at.meets(g.visible) || box.at.h * g.zoom < 6) continue;
    // What of the box is in view has the title.
    const double edge = g.left + 6 / g.zoom, least = std::min<double>(box.at.w - 20, kLeastTitle);
    const double left = std::clamp<double>(edge, box.at.x + 10, box.at.right() - 10 - least), base = box.at.y + 18,
                 width = box.at.right() - 10 - left;
    const QString right = box.gradient ? QString() : g.labels.groupSource(box.group), title = g.labels.groupTitle(box);
    const double used = right.isEmpty() ? 0 : g.small.width(right) + 12;
    g.p->fillRect(QRectF(left - 3, base - 11, std::min(width - used, g.head.width(title)) + 6, 15), g.t.panel);
    g.text(g.head, g.grown(g.t.muted, g.t.panel, seen), left, base, width - used, title);
    if (right.isEmpty()) continue;
    g.p->fillRect(QRectF(left + width - used + 9, base - 11, used - 6, 15), g.t.panel);
    g.text(g.small, g.grown(g.t.faint, g.t.panel, seen), left, base, width, right, Qt::AlignRight);
  }
}

void paintSelection(GraphPaintContext& g) {
  for (const int index : g.state->groupBoxes) {
    const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
    if (index == g.selectedBox || !rectOf(box.at).intersects(rectOf(g.visible))) continue;
    const double grow = std::max(2.0, 1.5 / g.zoom);
    g.p->setPen(QPen(g.t.accent, std::max(1.2, 1.2 / g.zoom)));
    g.p->setBrush(Qt::NoBrush);
    g.p->drawRoundedRect(rectOf(box.at).adjusted(-grow, -grow, grow, grow), 7, 7);
  }
  if (g.selectedBox >= 0) {
    const double grow = std::max(3.0, 2.0 / g.zoom);
    g.p->setPen(QPen(g.t.accent, std::max(2.0, 2.0 / g.zoom)));
    g.p->setBrush(Qt::NoBrush);
    g.p->drawRoundedRect(
        rectOf(g.scene.boxes[static_cast<std::size_t>(g.selectedBox)].at).adjusted(-grow, -grow, grow, grow), 7, 7);
  }
  if (g.state->currentMatch >= 0) {
    const int box = g.scene.boxOfNode[static_cast<std::size_t>(g.state->currentMatch)];
    if (box < 0 || box == g.selectedBox) return;
    g.p->setPen(QPen(g.t.accent, 2, Qt::DashLine));
    g.p->setBrush(Qt::NoBrush);
    g.p->drawRoundedRect(rectOf(g.scene.boxes[static_cast<std::size_t>(box)].at).adjusted(-4, -4, 4, 4), 7, 7);
  }
}

void paintHeatLegend(GraphPaintContext& g, QPainter& painter, const Viewport& view) {
  const QRectF bar(12, view.size.height() - 26, 140, 8);
  QLinearGradient ramp(bar.topLeft(), bar.topRight());
  // The ramp is in values; colours follow the square root.
  for (int i = 0; i <= 10; ++i) ramp.setColorAt(i / 10.0, g.t.heat(std::sqrt(i / 10.0)));
  const QString title = heatName(g.marks.heat) + QStringLiteral(" per node");
  // A box with an edge: without one it looks as if the nodes behind it were cut.
  const double wider = std::max(0.0, g.small.width(title) - bar.width());
  const QRectF box = bar.adjusted(-7.5, -21.5, wider + 7.5, 17.5);
  painter.fillRect(box, g.t.panel);
  painter.fillRect(bar, ramp);
  painter.setPen(g.t.border);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box);
  painter.drawRect(bar);
  painter.setFont(g.small.font());
  painter.setPen(g.t.muted);
  painter.drawText(QPointF(bar.x(), bar.y() - 6), title);
  const bool any = g.marks.heatMost > 0;
  if (any) painter.drawText(QPointF(bar.x(), bar.bottom() + 12), QStringLiteral("0"));
  const QString most = any ? heatText(g.marks.heat, g.marks.heatMost) : QStringLiteral("none yet");
  painter.drawText(QPointF(bar.right() - g.small.width(most), bar.bottom() + 12), most);
}

}  // namespace

void GraphPainter::paint(QPainter& painter, const Viewport& view, const GraphPaintState& state) {
  painter.save();
  painter.fillRect(QRectF(QPointF(), view.size), g_.t.panel);
  g_.begin(painter, view, state);
  const GraphScene& scene = g_.scene;
  if (scene.columnGap > 0) {
    const QRectF area = view.visible();
    QPen line(g_.t.border, 0, Qt::CustomDashLine);
    line.setDashPattern({2, 4});
    painter.setPen(line);
    painter.drawLine(QPointF(scene.columnGap, area.top()), QPointF(scene.columnGap, area.bottom()));
  }
  paintGroups(g_);
  if (kNodeHeight * g_.zoom < 2.2) {
    paintDots(g_);
  } else {
    scene.leaves.query(g_.visible, [&](int i) {
      g_.shown.push_back(i);
      return true;
    });
    std::sort(g_.shown.begin(), g_.shown.end());
    if (g_.zoom >= shown_from::kLines) paintFlow(g_);
    paintGroupTitles(g_);
    if (g_.zoom < shown_from::kFrames) {
      paintFlat(g_);
    } else {
      for (const int box : g_.shown) {
        if (g_.zoom > shown_from::kDetails) paintStubs(g_, box);
        if (scene.boxes[static_cast<std::size_t>(box)].kind == BoxKind::kClosedGroup) {
          paintClosed(g_, box);
        } else {
          paintNode(g_, box);
        }
      }
    }
  }
  paintFullEdges(g_);
  paintSelection(g_);
  painter.restore();
}

std::vector<ColumnTitle> columnTitles(const GraphScene& scene, const Viewport& view, const QFontMetricsF& metrics) {
  std::vector<ColumnTitle> titles;
  if (scene.columnGap <= 0) return titles;
  constexpr double kMargin = 8;  // beside the line and the edges of the widget
  const double right = view.size.width(), line = view.toX(scene.columnGap);
  const auto add = [&](double from, double to, double low, double high, const QString& words) {
    const double a = std::max(view.toX(from), 0.0), b = std::min(view.toX(to), right),
                 width = metrics.horizontalAdvance(words);
    if (b > a && high - low >= width) titles.push_back({std::clamp((a + b - width) / 2, low, high - width), words});
  };
  add(0, scene.columnGap, kMargin, std::min(line, right) - kMargin, QStringLiteral("Forward  ↓"));
  add(scene.columnGap, scene.bounds.w, std::max(line, 0.0) + kMargin, right - kMargin, QStringLiteral("Gradient  ↑"));
  return titles;
}

void GraphPainter::paintOverlay(QPainter& painter, const Viewport& view) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const QFont strong = sceneFont(12, QFont::DemiBold);
  painter.setFont(strong);
  if (g_.scene.columnGap > 0) {
    const QRectF band(0, 0, view.size.width(), 27);
    painter.fillRect(band, g_.t.panel);
    painter.setPen(g_.t.muted);
    for (const ColumnTitle& title : columnTitles(g_.scene, view, QFontMetricsF(strong)))
      painter.drawText(QPointF(title.x, 18), title.words);
  }
  if (g_.marks.heat != HeatKind::kNone) paintHeatLegend(g_, painter, view);
  painter.restore();
}

}  // namespace stepscope
