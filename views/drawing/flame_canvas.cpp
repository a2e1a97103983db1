// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/flame_canvas.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/tokens.h"
#include "views/drawing/axis_ticks.h"

namespace stepscope {

FlameCanvas::FlameCanvas(QWidget* parent) : AxisCanvas(parent), text_(smallFont()) {
  connect(this, &AxisCanvas::clicked, this, [this](QPointF pixel) {
    const int i = boxAt(pixel);
    if (i < 0) return;
    setSelected(boxes_[static_cast<std::size_t>(i)].id);
    emit chosen(boxes_[static_cast<std::size_t>(i)].id);
  });
  connect(this, &AxisCanvas::doubleClicked, this, [this](QPointF pixel) {
    const int i = boxAt(pixel);
    if (i < 0) {
      fit();
    } else {
      showRange(boxes_[static_cast<std::size_t>(i)].begin, boxes_[static_cast<std::size_t>(i)].end);
    }
  });
}

double FlameCanvas::rowHeight() const { return std::round(Metrics::current().unit * 1.6); }

QRectF FlameCanvas::plot() const {
  const int unit = Metrics::current().unit;
  const double top = axis_ ? 1.7 * unit : 0.5 * unit;
  return QRectF(0.8 * unit, top, width() - 1.6 * unit, height() - top - 0.4 * unit);
}

QSize FlameCanvas::sizeHint() const {
  return {500, static_cast<int>(area().top() + rowHeight() * std::clamp(depth_, 3, 14)) + 12};
}

void FlameCanvas::setBoxes(std::vector<FlameBox> boxes, std::function<QString(double)> axis,
                           std::function<QString(const FlameBox&)> tip) {
  boxes_ = std::move(boxes);
  axis_ = std::move(axis);
  tip_ = std::move(tip);
  plotChanged();
  std::stable_sort(boxes_.begin(), boxes_.end(), [](const FlameBox& a, const FlameBox& b) {
    return a.depth != b.depth ? a.depth < b.depth : a.begin < b.begin;
  });
  depth_ = boxes_.empty() ? 0 : boxes_.back().depth + 1;
  rowStart_.assign(static_cast<std::size_t>(depth_) + 1, 0);
  for (const FlameBox& b : boxes_) ++rowStart_[static_cast<std::size_t>(b.depth) + 1];
  for (std::size_t i = 1; i < rowStart_.size(); ++i) rowStart_[i] += rowStart_[i - 1];
  double begin = 0, end = 1;
  if (!boxes_.empty()) {
    begin = end = boxes_[0].begin;
    for (const FlameBox& b : boxes_) {
      begin = std::min(begin, b.begin);
      end = std::max(end, b.end);
    }
  }
  narrowest_ = std::max(1e-9, (end - begin) * 1e-7);
  hovered_ = -1;
  scroll(0);
  setLimits(begin, end);
}

void FlameCanvas::setSelected(int id) {
  selected_ = id;
  update();
}

void FlameCanvas::setMarked(std::unordered_set<int> ids) {
  if (ids == marked_) return;
  marked_ = std::move(ids);
  update();
}

bool FlameCanvas::scroll(double pixels) {
  const double most = std::max(0.0, depth_ * rowHeight() - area().height());
  const double before = offset_;
  offset_ = std::clamp(offset_ + pixels, 0.0, most);
  if (offset_ != before) update();
  return most > 0;
}

int FlameCanvas::boxAt(QPointF pixel) const {
  const QRectF area = this->area();
  if (!area.contains(pixel)) return -1;
  const int row = static_cast<int>((pixel.y() - area.top() + offset_) / rowHeight());
  if (row < 0 || row >= depth_) return -1;
  const double at = toValue(pixel.x());
  const auto first = boxes_.begin() + static_cast<std::ptrdiff_t>(rowStart_[static_cast<std::size_t>(row)]);
  const auto last = boxes_.begin() + static_cast<std::ptrdiff_t>(rowStart_[static_cast<std::size_t>(row) + 1]);
  auto it = std::upper_bound(first, last, at, [](double v, const FlameBox& b) { return v < b.begin; });
  if (it == first) return -1;
  --it;
  return at <= it->end ? static_cast<int>(it - boxes_.begin()) : -1;
}

void FlameCanvas::hover(QPointF pixel, bool inside) {
  const int i = inside ? boxAt(pixel) : -1;
  if (i == hovered_) return;
  hovered_ = i;
  setCursor(i >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
}

QString FlameCanvas::tipAt(QPointF pixel) const {
  const int i = boxAt(pixel);
  return i < 0 || !tip_ ? QString() : tip_(boxes_[static_cast<std::size_t>(i)]);
}

void FlameCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintOn(painter);
}

void FlameCanvas::paintOn(QPainter& p) {
  const Tokens& t = Tokens::current();
  const QRectF area = this->area();
  p.fillRect(rect(), t.panel);
  p.setFont(text_.font());
  const QFontMetricsF metrics(text_.font());
  if (axis_) {
    for (const double tick : decimalTicks(viewBegin() - limitBegin(), viewEnd() - limitBegin(),
                                          std::max(2, static_cast<int>(area.width() / 110)))) {
      const double x = toX(limitBegin() + tick);
      p.setPen(t.grid);
      p.drawLine(QPointF(x, area.top()), QPointF(x, height()));
      const QString words = tick == 0 ? QStringLiteral("0") : axis_(tick);
      if (x + metrics.horizontalAdvance(words) + 4 > width()) continue;
      p.setPen(t.faint);
      p.drawText(QPointF(x + 3, area.top() - 5), words);
    }
    p.setPen(t.border);
    p.drawLine(QPointF(0, area.top() - 0.5), QPointF(width(), area.top() - 0.5));
  }
  p.save();
  p.setClipRect(QRectF(0, area.top(), width(), height() - area.top()));
  const double row = rowHeight();
  for (int depth = 0; depth < depth_; ++depth) {
    const double y = area.top() + 3 + depth * row - offset_;
    if (y > height() || y + row < area.top()) continue;
    double mergedFrom = -1, mergedTo = -1;
    const auto flush = [&] {
      if (mergedFrom >= 0)
        p.fillRect(QRectF(mergedFrom, y, std::max(1.0, mergedTo - mergedFrom), row - 2), mixed(t.edge, t.panel, 0.5));
      mergedFrom = -1;
    };
    for (std::size_t i = rowStart_[static_cast<std::size_t>(depth)]; i < rowStart_[static_cast<std::size_t>(depth) + 1];
         ++i) {
      const FlameBox& b = boxes_[i];
      if (b.end < viewBegin()) continue;
      if (b.begin > viewEnd()) break;
      const double x0 = std::max(toX(b.begin), area.left() - 4), x1 = std::min(toX(b.end), area.right() + 4);
      const bool marked = marked_.contains(b.id);
      if (x1 - x0 < 1.5 && b.id != selected_ && !marked) {
        if (mergedFrom >= 0 && x0 > mergedTo + 1.5) flush();
        if (mergedFrom < 0) mergedFrom = x0;
        mergedTo = std::max(x1, x0 + 1);
        continue;
      }
      flush();
      const QColor hue = b.failed                 ? t.error
                         : !b.category.isEmpty()  ? t.category(b.category)
                         : b.colourName.isEmpty() ? t.edge
                                                  : t.forName(b.colourName);
      const bool hot = static_cast<int>(i) == hovered_;
      const QColor fill = mixed(hue, t.panel, hot ? 0.5 : 0.34);
      const QRectF box(x0, y, std::max(1.5, x1 - x0 - 1), row - 2);
      p.fillRect(box, fill);
      p.fillRect(QRectF(box.x(), box.y(), std::min(2.0, box.width()), box.height()), hue);
      if (box.width() > 26) {
        const double room = box.width() - 10;
        p.setPen(t.text);
        p.drawText(QPointF(box.x() + 6, y + row / 2 + metrics.ascent() / 2 - 2), text_.legible(b.name, room));
        const double used = std::min(room, text_.width(b.name));
        if (!b.detail.isEmpty() && room - used > text_.width(b.detail) + 10) {
          p.setPen(t.muted);
          p.drawText(QPointF(box.x() + 6 + used + 8, y + row / 2 + metrics.ascent() / 2 - 2), b.detail);
        }
      }
      if ((b.id == selected_ && selected_ >= 0) || marked) {
        p.setPen(QPen(t.accent, b.id == selected_ ? 2 : 1.2));
        p.setBrush(Qt::NoBrush);
        p.drawRect(box.adjusted(0, 0, 0, 0));
      }
    }
    flush();
  }
  p.restore();
  if (hasFocus()) {
    p.setPen(t.accent);
    p.drawLine(QPointF(0, 0.5), QPointF(width(), 0.5));
  }
}

}  // namespace stepscope
