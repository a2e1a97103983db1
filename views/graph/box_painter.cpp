// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/box_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <map>

namespace stepscope {
namespace {

constexpr double kAlone = 0.15;

// The category: a stripe with the box's own rounding on its left; dotted beside it for the gradient.
void paintStripe(GraphPaintContext& g, const SceneBox& box, const QColor& hue) {
  const QRectF r = rectOf(box.at);
  QPainterPath stripe(QPointF(r.x() + 5, r.y()));
  stripe.lineTo(r.x() + 4, r.y());
  stripe.arcTo(QRectF(r.x(), r.y(), 8, 8), 90, 90);
  stripe.lineTo(r.x(), r.bottom() - 4);
  stripe.arcTo(QRectF(r.x(), r.bottom() - 8, 8, 8), 180, 90);
  stripe.lineTo(r.x() + 5, r.bottom());
  stripe.closeSubpath();
  g.p->fillPath(stripe, hue);
  if (box.gradient && box.lane != Lane::kOptimizer) {
    QPen dots(hue, 1.5, Qt::CustomDashLine, Qt::FlatCap);
    dots.setDashPattern({1.33, 1.33});
    g.p->setPen(dots);
    g.p->drawLine(QPointF(r.x() + 8.5, r.y() + 3), QPointF(r.x() + 8.5, r.bottom() - 3));
  }
}

// Words that stand alone in small zooms are larger there, down to their size where second lines have come.
void largeText(GraphPaintContext& g, TextCache& cache, const QColor& colour, double x, double baseline, double width,
               const QString& words) {
  // As long as none is cut for it.
  const double scale =
      std::clamp(width / std::max(1.0, cache.width(words)), 1.0, 1 + kAlone * (1 - g.seen(shown_from::kDetails)));
  if (scale <= 1) return g.text(cache, colour, x, baseline, width, words);
  const QTransform before = g.p->transform();
  g.p->translate(x, baseline);
  g.p->scale(scale, scale);
  g.text(cache, colour, 0, 0, width / scale, words);
  g.p->setTransform(before);
}

void paintWords(GraphPaintContext& g, const SceneBox& box, const GraphPaintContext::Colours& c) {
  const QRectF r = rectOf(box.at);
  const NodeMarks& marks = g.marks.nodes[static_cast<std::size_t>(box.node)];
  const double detail = g.seen(shown_from::kDetails);
  // Badges stand on the second line, which is the shorter one.
  double right = r.right() - 7;
  if (detail > 0) {
    const auto badge = [&](const QString& sign, const QColor& colour) {
      const double width = g.small.width(sign);
      g.text(g.small, g.grown(colour, c.fill, detail), right - width, r.y() + 27.5, width + 2, sign);
      right -= width + 4;
    };
    if (marks.inPlace) badge(QStringLiteral("⟲"), mixed(g.t.muted, c.fill, 0.9));
    if (marks.nondeterministic) badge(QStringLiteral("≁"), g.t.warn);
    if (marks.difference != Difference::kNone) {
      badge(marks.difference == Difference::kAdded     ? QStringLiteral("+")
            : marks.difference == Difference::kRemoved ? QStringLiteral("−")
                                                       : QStringLiteral("±"),
            c.line);
    }
  }
  // The title makes room while the second line comes.
  static const QString kNothing;
  const QString& sub = detail > 0 ? g.labels.sub(box.node) : kNothing;
  const double alone = r.center().y() + 4.5, above = r.y() + 15;
  largeText(g, g.title, g.grown(c.title, c.fill, g.seen(shown_from::kTitles)), r.x() + 14,
            sub.isEmpty() ? alone : alone + (above - alone) * detail, r.width() - 20, g.labels.title(box.node));
  g.text(g.sub, g.grown(c.sub, c.fill, detail), r.x() + 14, r.y() + 27.5, right - r.x() - 13, sub);
}

void paintBreakpoint(GraphPaintContext& g, const QRectF& r) {
  g.p->setPen(Qt::NoPen);
  g.p->setBrush(g.t.error);
  g.p->drawEllipse(QPointF(r.x() - 9, r.center().y()), 4.5, 4.5);
}

// The arrow at the node that runs next, further out where a breakpoint stands.
void paintCurrent(GraphPaintContext& g, const QRectF& r, bool breakpoint) {
  const double left = r.x() - 15 - (breakpoint ? 8 : 0), tip = r.x() - 5 - (breakpoint ? 10 : 0), y = r.center().y();
  const QPointF arrow[3] = {{left, y - 6}, {tip, y}, {left, y + 6}};
  g.p->setPen(Qt::NoPen);
  g.p->setBrush(g.t.warn);
  g.p->drawConvexPolygon(arrow, 3);
}

}  // namespace

void paintDots(GraphPaintContext& g) {
  // Thousands of boxes per pixel row: one pixel each, last one wins, straight into memory.
  const QRectF device = g.p->worldTransform().mapRect(QRectF(g.visible.x, g.visible.y, g.visible.w, g.visible.h));
  const auto width = static_cast<int>(std::min(8192.0, std::ceil(device.width()))),
             height = static_cast<int>(std::min(8192.0, std::ceil(device.height())));
  if (width <= 0 || height <= 0) return;
  QImage image(width, height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  const float sx = static_cast<float>(width) / g.visible.w, sy = static_cast<float>(height) / g.visible.h;
  std::vector<QRgb> colours;
  for (const QColor& hue : g.hues) colours.push_back(mixed(hue, g.t.panel, 0.75).rgb());
  g.scene.leaves.query(g.visible, [&](int i) {
    const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(i)];
    const bool back = g.stepsBack(box);
    QRgb colour =
        box.node < 0 ? g.t.edge.rgb() : colours[g.scene.model->nodes()[static_cast<std::size_t>(box.node)].category];
    if (const float heat = g.heatOf(box); heat >= 0) colour = g.t.heat(heat).rgb();
    if (box.node >= 0 && g.marks.nodes[static_cast<std::size_t>(box.node)].difference != Difference::kNone)
      colour = g.coloursOf(box).line.rgb();
    if (back) colour = mixed(QColor::fromRgb(colour), g.t.panel, 0.2).rgb();
    const int x0 = std::clamp(static_cast<int>((box.at.x - g.visible.x) * sx), 0, width - 1);
    const int x1 = std::clamp(static_cast<int>((box.at.right() - g.visible.x) * sx), x0, width - 1);
    const int y0 = std::clamp(static_cast<int>((box.at.y - g.visible.y) * sy), 0, height - 1);
    const int y1 = std::clamp(static_cast<int>((box.at.bottom() - g.visible.y) * sy), y0, height - 1);
    for (int y = y0; y <= y1; ++y) {
      auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
      std::fill(line + x0, line + x1 + 1, colour);
    }
    return true;
  });
  g.p->drawImage(QRectF(g.visible.x, g.visible.y, g.visible.w, g.visible.h), image);
}

void paintFlat(GraphPaintContext& g) {
  std::map<QRgb, std::vector<QRectF>> batches;
  std::vector<int> closed;
  for (const int i : g.shown) {
    const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(i)];
    if (box.kind == BoxKind::kClosedGroup) {
      closed.push_back(i);
      continue;
    }
    batches[g.flatOf(box, g.coloursOf(box)).rgb()].push_back(rectOf(box.at));
  }
  g.p->setRenderHint(QPainter::Antialiasing, false);
  g.p->setPen(Qt::NoPen);
  for (const auto& [colour, rects] : batches) {
    g.p->setBrush(QColor::fromRgb(colour));
    g.p->drawRects(rects.data(), static_cast<int>(rects.size()));
  }
  g.p->setRenderHint(QPainter::Antialiasing);
  for (const int i : closed) paintClosed(g, i);
}

void paintNode(GraphPaintContext& g, int index) {
  const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
  GraphPaintContext::Colours c = g.coloursOf(box);
  const QRectF r = rectOf(box.at);
  const NodeMarks& marks = g.marks.nodes[static_cast<std::size_t>(box.node)];
  if (const double framed = g.seen(shown_from::kFrames); framed < 1) {
    const QColor flat = g.flatOf(box, c);
    for (QColor* colour : {&c.fill, &c.line, &c.hue}) *colour = mixed(*colour, flat, framed);
  }
  if (box.kind == BoxKind::kInput) {
    g.p->setPen(QPen(c.line, 1));
    g.p->setBrush(g.grown(g.t.raised, c.fill, g.seen(shown_from::kFrames)));
    g.p->drawRoundedRect(r, r.height() / 2, r.height() / 2);
    if (g.zoom > shown_from::kTitles)
      g.text(g.sub, g.grown(c.sub, g.t.raised, g.seen(shown_from::kTitles)), r.x() + 12, r.center().y() + 4, r.width() - 24,
             g.labels.title(box.node), Qt::AlignHCenter);
    return;
  }
  const bool isCurrent = box.node == g.marks.current;
  QPen frame(isCurrent ? g.t.warn : index == g.state->hovered ? g.t.edge : c.line, isCurrent ? 1.6 : 1);
  if (g.marks.nodes[static_cast<std::size_t>(box.node)].difference == Difference::kRemoved ||
      g.scene.model->phase(box.node) == snapshot::RECOMPUTE) {
    frame.setStyle(Qt::CustomDashLine);
    frame.setDashPattern({4, 3});
    frame.setCapStyle(Qt::FlatCap);
  }
  g.p->setPen(frame);
  g.p->setBrush(c.fill);
  g.p->drawRoundedRect(r, 4, 4);
  paintStripe(g, box, c.hue);
  if (g.zoom > shown_from::kTitles) paintWords(g, box, c);
  if (marks.breakpoint) paintBreakpoint(g, r);
  if (isCurrent) paintCurrent(g, r, marks.breakpoint);
}

void paintClosed(GraphPaintContext& g, int index) {
  const SceneBox& box = g.scene.boxes[static_cast<std::size_t>(index)];
  const QRectF r = rectOf(box.at);
  const float heat = g.heatOf(box);
  const QColor fill = heat >= 0 ? g.t.heat(heat) : g.t.panel;
  const GroupMarks& marks = g.marks.groups[static_cast<std::size_t>(box.group)];
  const bool differs = marks.differences[box.gradient ? 1 : 0] > 0;
  g.p->setPen(QPen(differs ? g.t.changed : index == g.state->hovered ? g.t.edge : g.t.border, 1));
  g.p->setBrush(box.folded > 1 ? g.t.panel : heat >= 0 ? fill : g.t.raised);
  g.p->drawRoundedRect(r, 6, 6);
  const double seen = g.seen(shown_from::kGroupWords);
  const bool words = seen > 0;
  const QString count = g.labels.groupCount(box) + QStringLiteral(" ▸");
  if (box.folded > 1) {
    const QRectF card = r.adjusted(9, 29, -9, -10);
    g.p->setPen(QPen(g.t.border, 1));
    g.p->setBrush(heat >= 0 ? fill : g.t.raised);
    g.p->drawRoundedRect(card, 4, 4);
    if (words) {
      const QColor onCard = heat < 0 || contrast(g.t.text, fill) >= contrast(g.t.panel, fill) ? g.t.text : g.t.panel;
      const QColor paper = heat >= 0 ? fill : g.t.raised;
      g.text(g.sub, g.grown(g.t.faint, g.t.panel, seen), r.x() + 10, r.y() + 19, r.width() - 20, count, Qt::AlignRight);
      g.text(g.head, g.grown(g.t.muted, g.t.panel, seen), r.x() + 10, r.y() + 19, r.width() - 34 - g.sub.width(count),
             g.labels.groupTitle(box));
      g.text(g.head, g.grown(onCard, paper, seen), card.x() + 11, card.y() + 22, card.width() - 22,
             g.labels.foldedLine(box));
      const QStringList facts = g.labels.groupFacts(box, g.marks) << QStringLiteral("double-click opens one");
      g.text(g.sub, mixed(onCard, paper, 0.75 * seen), card.x() + 11, card.y() + 39, card.width() - 22,
             g.fitting(facts, QStringLiteral(" · "), card.width() - 22));
    }
  } else if (words) {
    const QColor ink = heat < 0 || contrast(g.t.text, fill) >= contrast(g.t.panel, fill) ? g.t.text : g.t.panel;
    const QColor dim = heat >= 0 ? ink : g.t.muted;
    const QColor paper = heat >= 0 ? fill : g.t.raised;
    largeText(g, g.head, g.grown(ink, paper, seen), r.x() + 10, r.y() + 21, r.width() - 20, g.labels.groupTitle(box));
    g.text(g.sub, g.grown(dim, paper, seen), r.x() + 10, r.y() + 39, r.width() - 20,
           g.fitting(QStringList(count) + g.labels.groupFacts(box, g.marks), QStringLiteral("  "), r.width() - 20));
  }
  if (marks.breakpoint[box.gradient ? 1 : 0]) paintBreakpoint(g, r);
  const bool holdsCurrent = g.marks.current >= 0 && g.scene.boxOfNode[static_cast<std::size_t>(g.marks.current)] == index;
  if (holdsCurrent) {
    g.p->setPen(QPen(g.t.warn, 1.6));
    g.p->setBrush(Qt::NoBrush);
    g.p->drawRoundedRect(r, 6, 6);
    paintCurrent(g, r, marks.breakpoint[box.gradient ? 1 : 0]);
  }
}

}  // namespace stepscope
