// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <map>

#include "views/graph/edge_router.h"
#include "views/graph/layout_metrics.h"

namespace stepscope {
namespace {

// Zooms from which on things are shown.
constexpr double kBoxesFrom = 0.16, kFramesFrom = 0.32, kTitlesFrom = 0.42, kDetailsFrom = 0.55;
constexpr double kLinesFrom = 0.1, kCurvesFrom = 0.28, kArrowsFrom = 0.42;

QRectF rect(const BoxF& b) { return {b.x, b.y, b.w, b.h}; }
QPointF point(PointF2 p) { return {p.x, p.y}; }

}  // namespace

GraphPainter::GraphPainter(const GraphScene& scene, GraphLabels& labels, const GraphMarks& marks, const Tokens& tokens)
    : scene_(scene),
      labels_(labels),
      marks_(marks),
      t_(tokens),
      title_(sceneFont(12, QFont::Medium)),
      sub_(sceneFont(10.5)),
      small_(sceneFont(10)),
      head_(sceneFont(11.5)) {
  std::map<std::string, std::uint8_t> known;
  const GraphModel& model = *scene.model;
  hues_.push_back(t_.category(QStringLiteral("other")));
  category_.assign(static_cast<std::size_t>(model.size()), 0);
  const GraphSnapshot& graph = model.snapshot();
  for (int i = 0; i < model.size(); ++i) {
    const snapshot::Node* node = model.node(i);
    if (node == nullptr) continue;
    // A gradient node keeps its forward node's hue.
    if (node->phase() == snapshot::BACKWARD) {
      if (const snapshot::Node* forward = graph.node(graph.forwardOf(node->id()))) node = forward;
    }
    const auto [at, fresh] =
        known.emplace(node->category(), static_cast<std::uint8_t>(std::min<std::size_t>(hues_.size(), 255)));
    if (fresh && hues_.size() < 255) hues_.push_back(t_.category(QString::fromStdString(node->category())));
    category_[static_cast<std::size_t>(i)] = std::min(at->second, static_cast<std::uint8_t>(hues_.size() - 1));
  }
}

void GraphPainter::text(TextCache& cache, const QColor& colour, double x, double baseline, double width, const QString& what,
                        Qt::Alignment align) {
  if (what.isEmpty() || width < 6) return;
  const QString& shown = cache.elided(what, width);
  double left = x;
  if (align & (Qt::AlignRight | Qt::AlignHCenter)) {
    const double used = std::min(width, cache.width(what));
    left = align & Qt::AlignRight ? x + width - used : x + (width - used) / 2;
  }
  p_->setFont(cache.font());
  p_->setPen(colour);
  p_->drawText(QPointF(left, baseline), shown);
}

// As many parts as fit, the first ones first.
QString GraphPainter::fitting(const QStringList& parts, const QString& separator, double width) {
  QString words;
  for (const QString& part : parts) {
    const QString longer = words.isEmpty() ? part : words + separator + part;
    if (!words.isEmpty() && sub_.width(longer) > width) break;
    words = longer;
  }
  return words;
}

void GraphPainter::paint(QPainter& painter, const Viewport& view, const GraphPaintState& state) {
  p_ = &painter;
  state_ = &state;
  zoom_ = view.scaleX;
  const QRectF area = view.visible();
  visible_ = {static_cast<float>(area.x()) - 130, static_cast<float>(area.y()) - 40, static_cast<float>(area.width()) + 260,
              static_cast<float>(area.height()) + 80};
  selectedBox_ = state.selectedNode < 0 ? -1 : scene_.boxOfNode[static_cast<std::size_t>(state.selectedNode)];
  painter.save();
  painter.fillRect(QRectF(QPointF(), view.size), t_.panel);
  painter.scale(view.scaleX, view.scaleY);
  painter.translate(-view.origin);
  painter.setRenderHint(QPainter::Antialiasing);
  if (scene_.columnGap > 0) {
    QPen line(t_.border, 0, Qt::CustomDashLine);
    line.setDashPattern({2, 4});
    painter.setPen(line);
    painter.drawLine(QPointF(scene_.columnGap, area.top()), QPointF(scene_.columnGap, area.bottom()));
  }
  shown_.clear();
  paintGroups();
  if (kNodeHeight * zoom_ < 2.2) {
    paintDots();
  } else {
    scene_.leaves.query(visible_, [&](int i) {
      shown_.push_back(i);
      return true;
    });
    std::sort(shown_.begin(), shown_.end());
    if (zoom_ >= kLinesFrom) paintFlow();
    if (zoom_ < kFramesFrom) {
      paintFlat();
    } else {
      paintBoxes();
    }
  }
  paintFullEdges();
  paintSelection();
  painter.restore();
}

bool GraphPainter::stepsBack(const SceneBox& box) const {
  if (state_->emphasised != nullptr) return box.node >= 0 && !state_->emphasised->contains(box.node);
  return state_->matches != nullptr && box.node >= 0 && !state_->matches->contains(box.node);
}

float GraphPainter::heatOf(const SceneBox& box) const {
  if (marks_.heat == HeatKind::kNone) return -1;
  return box.node >= 0 ? marks_.nodes[static_cast<std::size_t>(box.node)].heat
                       : marks_.groups[static_cast<std::size_t>(box.group)].heat[box.gradient ? 1 : 0];
}

GraphPainter::Colours GraphPainter::coloursOf(const SceneBox& box) const {
  Colours c{.hue = box.node >= 0 ? hues_[category_[static_cast<std::size_t>(box.node)]] : t_.edge,
            .fill = t_.panel,
            .line = t_.border,
            .title = t_.text,
            .sub = t_.muted};
  const Difference difference =
      box.node >= 0 ? marks_.nodes[static_cast<std::size_t>(box.node)].difference : Difference::kNone;
  if (difference != Difference::kNone) {
    c.line = difference == Difference::kAdded ? t_.added : difference == Difference::kRemoved ? t_.removed : t_.changed;
    c.fill = mixed(c.line, t_.panel, 0.12);
  }
  if (const float heat = heatOf(box); heat >= 0) {
    c.fill = t_.heat(heat);
    // Whichever of the two text colours reads better on the heat.
    c.title = contrast(t_.text, c.fill) >= contrast(t_.panel, c.fill) ? t_.text : t_.panel;
    c.sub = mixed(c.title, c.fill, 0.85);
  }
  if (state_->matches != nullptr && box.node >= 0 && state_->matches->contains(box.node)) {
    c.fill = t_.select;
    c.line = t_.accent;
  }
  const bool waiting =
      box.node >= 0 && marks_.nodes[static_cast<std::size_t>(box.node)].waiting && state_->hovered != selectedBox_;
  if (stepsBack(box) || (waiting && difference == Difference::kNone && box.node != state_->selectedNode)) {
    const double keep = stepsBack(box) ? 0.3 : 0.55;
    for (QColor* colour : {&c.hue, &c.title, &c.sub}) *colour = mixed(*colour, c.fill, keep);
    c.line = mixed(c.line, t_.panel, std::max(keep, 0.6));
  }
  return c;
}

void GraphPainter::paintGroups() {
  for (const int index : scene_.openGroups) {
    const SceneBox& box = scene_.boxes[static_cast<std::size_t>(index)];
    if (!box.at.meets(visible_) || box.at.h * zoom_ < 6) continue;
    p_->setPen(QPen(index == state_->hovered ? t_.edge : t_.border, zoom_ < 1 ? 0 : 1));
    p_->setBrush(Qt::NoBrush);
    p_->drawRoundedRect(rect(box.at), 6, 6);
    const double width = box.at.w - 20;
    if (zoom_ >= kTitlesFrom) {
      const QString right = box.gradient ? QString() : labels_.groupSource(box.group);
      const double used = right.isEmpty() ? 0 : small_.width(right) + 12;
      text(head_, t_.muted, box.at.x + 10, box.at.y + 18, width - used, labels_.groupTitle(box));
      text(small_, t_.faint, box.at.x + 10, box.at.y + 18, width, right, Qt::AlignRight);
    }
  }
}

void GraphPainter::paintEdge(int index, const QPen& pen, bool arrow) {
  const SceneEdge& edge = scene_.edges[static_cast<std::size_t>(index)];
  const PointF2* q = scene_.points.data() + edge.firstPoint;
  QPainterPath path(point(q[0]));
  for (int i = 1; i + 2 < edge.points; i += 3) path.cubicTo(point(q[i]), point(q[i + 1]), point(q[i + 2]));
  p_->setPen(pen);
  p_->setBrush(Qt::NoBrush);
  p_->drawPath(path);
  if (arrow) paintArrow(q[edge.points - 1], q[edge.points - 2], pen.color());
}

void GraphPainter::paintArrow(PointF2 tip, PointF2 from, const QColor& colour) {
  const double dx = tip.x - from.x, dy = tip.y - from.y, length = std::hypot(dx, dy);
  if (length < 0.01) return;
  const QPointF along(dx / length, dy / length), across(-along.y(), along.x());
  const QPointF end = point(tip), base = end - along * 6.5;
  p_->setPen(Qt::NoPen);
  p_->setBrush(colour);
  const QPointF corners[3] = {end, base + across * 2.8, base - across * 2.8};
  p_->drawConvexPolygon(corners, 3);
}

void GraphPainter::paintFlow() {
  const bool curves = zoom_ >= kCurvesFrom;
  const QColor plain = curves ? mixed(t_.edge, t_.panel, 0.8) : mixed(t_.edge, t_.panel, 0.45);
  std::vector<QLineF> lines;
  std::vector<int> strong;
  scene_.lines.query(visible_, [&](int i) {
    const SceneEdge& edge = scene_.edges[static_cast<std::size_t>(i)];
    const bool touches = selectedBox_ >= 0 && (edge.from == selectedBox_ || edge.to == selectedBox_);
    if (touches) {
      strong.push_back(i);
    } else if (curves) {
      const bool faded = (state_->emphasised != nullptr || state_->matches != nullptr) &&
                         (stepsBack(scene_.boxes[static_cast<std::size_t>(edge.from)]) ||
                          stepsBack(scene_.boxes[static_cast<std::size_t>(edge.to)]));
      paintEdge(i, QPen(faded ? t_.border : plain, 1), zoom_ >= kArrowsFrom);
    } else {
      const PointF2* q = scene_.points.data() + edge.firstPoint;
      lines.emplace_back(point(q[0]), point(q[edge.points - 1]));
    }
    return true;
  });
  if (!lines.empty()) {
    p_->setRenderHint(QPainter::Antialiasing, false);
    p_->setPen(QPen(plain, 0));
    p_->drawLines(lines.data(), static_cast<int>(lines.size()));
    p_->setRenderHint(QPainter::Antialiasing);
  }
  for (const int i : strong) paintEdge(i, QPen(t_.accent, 1.3), zoom_ >= kArrowsFrom);
  if (zoom_ < kDetailsFrom) return;
  scene_.lines.query(visible_, [&](int i) {
    const SceneEdge& edge = scene_.edges[static_cast<std::size_t>(i)];
    if (!edge.straight) return true;
    const SceneBox& to = scene_.boxes[static_cast<std::size_t>(edge.to)];
    if (to.lane == Lane::kWeight || to.lane == Lane::kOptimizer) return true;
    const PointF2 a = scene_.points[static_cast<std::size_t>(edge.firstPoint)],
                  b = scene_.points[static_cast<std::size_t>(edge.firstPoint + edge.points - 1)];
    const QColor colour = stepsBack(to) ? mixed(t_.faint, t_.panel, 0.4) : t_.faint;
    text(small_, colour, std::max(a.x, b.x) + 6, (a.y + b.y) / 2 + 3.5, kNodeWidth / 2 - 4, labels_.shape(edge.value));
    return true;
  });
}

void GraphPainter::paintDots() {
  // Thousands of boxes per pixel row: one pixel each, last one wins, straight into memory.
  const QRectF device = p_->worldTransform().mapRect(QRectF(visible_.x, visible_.y, visible_.w, visible_.h));
  const auto width = static_cast<int>(std::min(8192.0, std::ceil(device.width()))),
             height = static_cast<int>(std::min(8192.0, std::ceil(device.height())));
  if (width <= 0 || height <= 0) return;
  QImage image(width, height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  const float sx = static_cast<float>(width) / visible_.w, sy = static_cast<float>(height) / visible_.h;
  std::vector<QRgb> colours;
  for (const QColor& hue : hues_) colours.push_back(mixed(hue, t_.panel, 0.75).rgb());
  scene_.leaves.query(visible_, [&](int i) {
    const SceneBox& box = scene_.boxes[static_cast<std::size_t>(i)];
    const bool back = stepsBack(box);
    QRgb colour = box.node < 0 ? t_.edge.rgb() : colours[category_[static_cast<std::size_t>(box.node)]];
    if (const float heat = heatOf(box); heat >= 0) colour = t_.heat(heat).rgb();
    if (box.node >= 0 && marks_.nodes[static_cast<std::size_t>(box.node)].difference != Difference::kNone)
      colour = coloursOf(box).line.rgb();
    if (back) colour = mixed(QColor::fromRgb(colour), t_.panel, 0.2).rgb();
    const int x0 = std::clamp(static_cast<int>((box.at.x - visible_.x) * sx), 0, width - 1);
    const int x1 = std::clamp(static_cast<int>((box.at.right() - visible_.x) * sx), x0, width - 1);
    const int y0 = std::clamp(static_cast<int>((box.at.y - visible_.y) * sy), 0, height - 1);
    const int y1 = std::clamp(static_cast<int>((box.at.bottom() - visible_.y) * sy), y0, height - 1);
    for (int y = y0; y <= y1; ++y) {
      auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
      std::fill(line + x0, line + x1 + 1, colour);
    }
    return true;
  });
  p_->drawImage(QRectF(visible_.x, visible_.y, visible_.w, visible_.h), image);
}

void GraphPainter::paintFlat() {
  std::map<QRgb, std::vector<QRectF>> batches;
  std::vector<int> closed;
  for (const int i : shown_) {
    const SceneBox& box = scene_.boxes[static_cast<std::size_t>(i)];
    if (box.kind == BoxKind::kClosedGroup) {
      closed.push_back(i);
      continue;
    }
    const Colours c = coloursOf(box);
    const bool filled = heatOf(box) >= 0 || c.fill != t_.panel;
    batches[filled ? (c.fill == t_.select ? t_.accent
                      : heatOf(box) >= 0  ? c.fill
                                          : c.line)
                         .rgb()
                   : mixed(c.hue, t_.panel, zoom_ < kBoxesFrom ? 0.75 : 0.6).rgb()]
        .push_back(rect(box.at));
  }
  p_->setRenderHint(QPainter::Antialiasing, false);
  p_->setPen(Qt::NoPen);
  for (const auto& [colour, rects] : batches) {
    p_->setBrush(QColor::fromRgb(colour));
    p_->drawRects(rects.data(), static_cast<int>(rects.size()));
  }
  p_->setRenderHint(QPainter::Antialiasing);
  for (const int i : closed) paintClosed(i);
}

void GraphPainter::paintBoxes() {
  for (const int i : shown_) {
    if (zoom_ >= kDetailsFrom) paintStubs(i);
    if (scene_.boxes[static_cast<std::size_t>(i)].kind == BoxKind::kClosedGroup) {
      paintClosed(i);
    } else {
      paintNode(i);
    }
  }
}

void GraphPainter::paintNode(int index) {
  const SceneBox& box = scene_.boxes[static_cast<std::size_t>(index)];
  const Colours c = coloursOf(box);
  const QRectF r = rect(box.at);
  const NodeMarks& marks = marks_.nodes[static_cast<std::size_t>(box.node)];
  if (box.kind == BoxKind::kInput) {
    p_->setPen(QPen(c.line, 1));
    p_->setBrush(t_.raised);
    p_->drawRoundedRect(r, r.height() / 2, r.height() / 2);
    if (zoom_ >= kTitlesFrom)
      text(sub_, c.sub, r.x() + 12, r.center().y() + 4, r.width() - 24, labels_.title(box.node), Qt::AlignHCenter);
    return;
  }
  const bool isCurrent = box.node == marks_.current;
  QPen frame(isCurrent ? t_.warn : index == state_->hovered ? t_.edge : c.line, isCurrent ? 1.6 : 1);
  if (marks_.nodes[static_cast<std::size_t>(box.node)].difference == Difference::kRemoved ||
      scene_.model->phase(box.node) == snapshot::RECOMPUTE) {
    frame.setStyle(Qt::CustomDashLine);
    frame.setDashPattern({4, 3});
    frame.setCapStyle(Qt::FlatCap);
  }
  p_->setPen(frame);
  p_->setBrush(c.fill);
  p_->drawRoundedRect(r, 4, 4);
  // The category: a stripe with the box's own rounding on its left.
  QPainterPath stripe(QPointF(r.x() + 5, r.y()));
  stripe.lineTo(r.x() + 4, r.y());
  stripe.arcTo(QRectF(r.x(), r.y(), 8, 8), 90, 90);
  stripe.lineTo(r.x(), r.bottom() - 4);
  stripe.arcTo(QRectF(r.x(), r.bottom() - 8, 8, 8), 180, 90);
  stripe.lineTo(r.x() + 5, r.bottom());
  stripe.closeSubpath();
  p_->fillPath(stripe, c.hue);
  if (box.gradient && box.lane != Lane::kOptimizer) {
    QPen dots(c.hue, 1.5, Qt::CustomDashLine, Qt::FlatCap);
    dots.setDashPattern({1.33, 1.33});
    p_->setPen(dots);
    p_->drawLine(QPointF(r.x() + 8.5, r.y() + 3), QPointF(r.x() + 8.5, r.bottom() - 3));
  }
  if (zoom_ >= kTitlesFrom) {
    const bool detailed = zoom_ >= kDetailsFrom;
    const QString& sub = detailed ? labels_.sub(box.node) : QString();
    double right = r.right() - 7;
    if (detailed) {
      const auto badge = [&](const QString& sign, const QColor& colour) {
        const double width = small_.width(sign);
        text(small_, colour, right - width, r.y() + 14.5, width + 2, sign);
        right -= width + 4;
      };
      if (marks.inPlace) badge(QStringLiteral("⟲"), mixed(t_.muted, c.fill, 0.9));
      if (marks.nondeterministic) badge(QStringLiteral("≁"), t_.warn);
      if (marks.difference != Difference::kNone) {
        badge(marks.difference == Difference::kAdded     ? QStringLiteral("+")
              : marks.difference == Difference::kRemoved ? QStringLiteral("−")
                                                         : QStringLiteral("±"),
              c.line);
      }
    }
    text(title_, c.title, r.x() + 14, sub.isEmpty() ? r.center().y() + 4.5 : r.y() + 15, right - r.x() - 16,
         labels_.title(box.node));
    text(sub_, c.sub, r.x() + 14, r.y() + 27.5, r.width() - 20, sub);
  }
  if (marks.breakpoint) {
    p_->setPen(Qt::NoPen);
    p_->setBrush(t_.error);
    p_->drawEllipse(QPointF(r.x() - 9, r.center().y()), 4.5, 4.5);
  }
  if (isCurrent) {
    const QPointF arrow[3] = {{r.x() - 15 - (marks.breakpoint ? 8 : 0), r.center().y() - 6},
                              {r.x() - 5 - (marks.breakpoint ? 10 : 0), r.center().y()},
                              {r.x() - 15 - (marks.breakpoint ? 8 : 0), r.center().y() + 6}};
    p_->setPen(Qt::NoPen);
    p_->setBrush(t_.warn);
    p_->drawConvexPolygon(arrow, 3);
  }
}

void GraphPainter::paintClosed(int index) {
  const SceneBox& box = scene_.boxes[static_cast<std::size_t>(index)];
  const QRectF r = rect(box.at);
  const float heat = heatOf(box);
  const QColor fill = heat >= 0 ? t_.heat(heat) : t_.panel;
  const GroupMarks& marks = marks_.groups[static_cast<std::size_t>(box.group)];
  const bool differs = marks.differences[box.gradient ? 1 : 0] > 0;
  p_->setPen(QPen(differs ? t_.changed : index == state_->hovered ? t_.edge : t_.border, 1));
  p_->setBrush(box.folded > 1 ? t_.panel : heat >= 0 ? fill : t_.raised);
  p_->drawRoundedRect(r, 6, 6);
  const bool words = zoom_ >= 0.3;
  const QString count = labels_.groupCount(box) + QStringLiteral(" ▸");
  if (box.folded > 1) {
    const QRectF card = r.adjusted(9, 29, -9, -10);
    p_->setPen(QPen(t_.border, 1));
    p_->setBrush(heat >= 0 ? fill : t_.raised);
    p_->drawRoundedRect(card, 4, 4);
    if (words) {
      const QColor onCard = heat < 0 || contrast(t_.text, fill) >= contrast(t_.panel, fill) ? t_.text : t_.panel;
      text(sub_, t_.faint, r.x() + 10, r.y() + 19, r.width() - 20, count, Qt::AlignRight);
      text(head_, t_.muted, r.x() + 10, r.y() + 19, r.width() - 34 - sub_.width(count), labels_.groupTitle(box));
      text(head_, onCard, card.x() + 11, card.y() + 22, card.width() - 22, labels_.foldedLine(box));
      const QStringList facts = labels_.groupFacts(box, marks_) << QStringLiteral("double-click opens one");
      text(sub_, mixed(onCard, heat >= 0 ? fill : t_.raised, 0.75), card.x() + 11, card.y() + 39, card.width() - 22,
           fitting(facts, QStringLiteral(" · "), card.width() - 22));
    }
  } else if (words) {
    const QColor ink = heat < 0 || contrast(t_.text, fill) >= contrast(t_.panel, fill) ? t_.text : t_.panel;
    const QColor dim = heat >= 0 ? ink : t_.muted;
    text(head_, ink, r.x() + 10, r.y() + 21, r.width() - 20, labels_.groupTitle(box));
    text(sub_, dim, r.x() + 10, r.y() + 39, r.width() - 20,
         fitting(QStringList(count) + labels_.groupFacts(box, marks_), QStringLiteral("  "), r.width() - 20));
  }
  if (marks.breakpoint[box.gradient ? 1 : 0]) {
    p_->setPen(Qt::NoPen);
    p_->setBrush(t_.error);
    p_->drawEllipse(QPointF(r.x() - 9, r.center().y()), 4.5, 4.5);
  }
  const bool holdsCurrent = marks_.current >= 0 && scene_.boxOfNode[static_cast<std::size_t>(marks_.current)] == index;
  if (holdsCurrent) {
    p_->setPen(QPen(t_.warn, 1.6));
    p_->setBrush(Qt::NoBrush);
    p_->drawRoundedRect(r, 6, 6);
    const QPointF arrow[3] = {
        {r.x() - 15, r.center().y() - 6}, {r.x() - 5, r.center().y()}, {r.x() - 15, r.center().y() + 6}};
    p_->setPen(Qt::NoPen);
    p_->setBrush(t_.warn);
    p_->drawConvexPolygon(arrow, 3);
  }
}

void GraphPainter::paintStubs(int index) {
  const SceneBox& box = scene_.boxes[static_cast<std::size_t>(index)];
  int out = -1, outCount = 0, in = -1, inCount = 0;
  bool onlyStash = true;
  const auto [begin, end] = scene_.edgesAt(index);
  for (const int* e = begin; e != end; ++e) {
    const SceneEdge& edge = scene_.edges[static_cast<std::size_t>(*e)];
    if (edge.kind == EdgeKind::kFlow) continue;
    const int other = edge.from == index ? edge.to : edge.from;
    if (other == selectedBox_ || other == state_->hovered) continue;  // drawn in full
    if (edge.from == index) {
      if (outCount++ == 0) out = *e;
    } else {
      if (inCount++ == 0) in = *e;
      onlyStash &= edge.kind == EdgeKind::kStash;
    }
  }
  if (outCount + inCount == 0 || state_->allEdges) return;
  const QColor colour = stepsBack(box) ? mixed(t_.accent, t_.panel, 0.3) : t_.accent;
  const double y = box.at.centerY();
  const auto draw = [&](double x, double side, const QString& label, double room) {
    p_->setPen(QPen(colour, 1));
    p_->drawLine(QPointF(x, y), QPointF(x + 12 * side, y));
    p_->setPen(Qt::NoPen);
    p_->setBrush(colour);
    p_->drawEllipse(QPointF(x + 13 * side, y), 2.3, 2.3);
    if (side > 0) {
      text(sub_, colour, x + 20, y + 3.7, room - 22, label);
    } else {
      text(sub_, colour, x - 20 - (room - 22), y + 3.7, room - 22, label, Qt::AlignRight);
    }
  };
  // A name needs free space up to the next box of the row; without it the dot alone says that there is more.
  const auto room = [&](BoxF area, bool right) {
    double space = area.w;
    scene_.leaves.query(area, [&](int other) {
      const BoxF& o = scene_.boxes[static_cast<std::size_t>(other)].at;
      if (other != index) space = std::min(space, static_cast<double>(right ? o.x - area.x : area.right() - o.right()) - 8);
      return true;
    });
    return space;
  };
  constexpr float kReach = 130;
  // The stub of a selected or hovered node is drawn as a full line instead.
  const bool full = index == selectedBox_ || index == state_->hovered;
  if (outCount > 0 && !full)
    draw(box.at.right(), 1, labels_.stub(scene_, out, true, outCount - 1),
         room({box.at.right() + 1, static_cast<float>(y) - 4, kReach, 8}, true));
  if (inCount > 0 && !full) {
    const QString label = onlyStash ? QString() : labels_.stub(scene_, in, false, inCount - 1);
    draw(box.at.x, -1, label,
         label.isEmpty() ? 0 : room({box.at.x - kReach - 1, static_cast<float>(y) - 4, kReach, 8}, false));
  }
}

void GraphPainter::paintFullEdges() {
  const auto full = [&](int e, const QColor& colour, double width, bool label) {
    const SceneEdge& edge = scene_.edges[static_cast<std::size_t>(e)];
    if (edge.kind == EdgeKind::kFlow) return;
    const auto q =
        fullCurve(scene_.boxes[static_cast<std::size_t>(edge.from)], scene_.boxes[static_cast<std::size_t>(edge.to)]);
    QPainterPath path(point(q[0]));
    path.cubicTo(point(q[1]), point(q[2]), point(q[3]));
    p_->setPen(QPen(colour, width / std::min(1.0, std::max(zoom_, 0.3))));
    p_->setBrush(Qt::NoBrush);
    p_->drawPath(path);
    if (zoom_ >= kArrowsFrom) paintArrow(q[3], q[2], colour);
    if (!label || zoom_ < kDetailsFrom) return;
    const QString words = labels_.stash(edge);
    const QPointF middle = path.pointAtPercent(0.5);
    const double used = sub_.width(words) + 8;
    p_->setPen(Qt::NoPen);
    p_->setBrush(t_.panel);
    p_->drawRoundedRect(QRectF(middle.x() - used / 2, middle.y() - 17, used, 14), 3, 3);
    text(sub_, colour, middle.x() - used / 2 + 4, middle.y() - 6.5, used, words);
  };
  if (state_->allEdges && zoom_ >= kBoxesFrom) {
    const QColor colour = mixed(t_.accent, t_.panel, 0.45);
    std::unordered_set<int> seen;
    for (const int i : shown_) {
      const auto [begin, end] = scene_.edgesAt(i);
      for (const int* e = begin; e != end; ++e) {
        if (seen.insert(*e).second) full(*e, colour, 0.8, false);
      }
    }
  }
  for (const int box : {state_->hovered, selectedBox_}) {
    if (box < 0) continue;
    const auto [begin, end] = scene_.edgesAt(box);
    const bool few = end - begin <= 12;
    for (const int* e = begin; e != end; ++e)
      full(*e, box == selectedBox_ ? t_.accent : mixed(t_.accent, t_.panel, 0.7), 1.4, few && box == selectedBox_);
  }
}

void GraphPainter::paintSelection() {
  if (selectedBox_ >= 0) {
    const double grow = std::max(3.0, 2.0 / zoom_);
    p_->setPen(QPen(t_.accent, std::max(2.0, 2.0 / zoom_)));
    p_->setBrush(Qt::NoBrush);
    p_->drawRoundedRect(rect(scene_.boxes[static_cast<std::size_t>(selectedBox_)].at).adjusted(-grow, -grow, grow, grow), 7,
                        7);
  }
  if (state_->currentMatch >= 0) {
    const int box = scene_.boxOfNode[static_cast<std::size_t>(state_->currentMatch)];
    if (box < 0 || box == selectedBox_) return;
    p_->setPen(QPen(t_.accent, 2, Qt::DashLine));
    p_->setBrush(Qt::NoBrush);
    p_->drawRoundedRect(rect(scene_.boxes[static_cast<std::size_t>(box)].at).adjusted(-4, -4, 4, 4), 7, 7);
  }
}

void GraphPainter::paintOverlay(QPainter& painter, const Viewport& view) {
  p_ = &painter;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const QFont strong = sceneFont(12, QFont::DemiBold);
  painter.setFont(strong);
  const QFontMetricsF metrics(strong);
  const auto column = [&](double from, double to, const QString& words) {
    const double a = std::max(view.toX(from), 0.0), b = std::min(view.toX(to), view.size.width());
    const double width = metrics.horizontalAdvance(words);
    if (b - a < width + 16) return;
    painter.setPen(t_.muted);
    painter.drawText(QPointF((a + b - width) / 2, 18), words);
  };
  if (scene_.columnGap > 0) {
    const QRectF band(0, 0, view.size.width(), 27);
    painter.fillRect(band, t_.panel);
    column(0, scene_.columnGap, QStringLiteral("Forward  ↓"));
    column(scene_.columnGap, scene_.bounds.w, QStringLiteral("Gradient  ↑"));
  }
  if (marks_.heat != HeatKind::kNone) {
    const QRectF bar(12, view.size.height() - 26, 140, 8);
    QLinearGradient ramp(bar.topLeft(), bar.topRight());
    // The ramp is in values; colours follow the square root.
    for (int i = 0; i <= 10; ++i) ramp.setColorAt(i / 10.0, t_.heat(std::sqrt(i / 10.0)));
    painter.fillRect(bar.adjusted(-6, -22, 60, 20), t_.panel);
    painter.fillRect(bar, ramp);
    painter.setPen(t_.border);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(bar);
    painter.setFont(small_.font());
    painter.setPen(t_.muted);
    painter.drawText(QPointF(bar.x(), bar.y() - 6), heatName(marks_.heat) + QStringLiteral(" per node"));
    painter.drawText(QPointF(bar.x(), bar.bottom() + 12), QStringLiteral("0"));
    const QString most = heatText(marks_.heat, marks_.heatMost);
    painter.drawText(QPointF(bar.right() - small_.width(most), bar.bottom() + 12), most);
  }
  painter.restore();
}

}  // namespace stepscope
