// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/streams/streams_canvas.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"
#include "views/drawing/axis_ticks.h"

namespace stepscope {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }
constexpr double kDragPixels = 5, kNarrow = 1.5;

}  // namespace

StreamsCanvas::StreamsCanvas(QWidget* parent) : AxisCanvas(parent), text_(smallFont()) {
  setAccessibleName(QStringLiteral("Streams"));
}

void StreamsCanvas::setPicture(std::shared_ptr<const StreamPicture> picture) {
  picture_ = std::move(picture);
  hovered_ = dragged_ = -1;
  dragging_ = false;
  plotChanged();
  if (picture_) setLimits(0, static_cast<double>(std::max<std::int64_t>(1, picture_->schedule.totalNs)));
  update();
}

void StreamsCanvas::setSelected(int instruction) {
  if (selected_ == instruction) return;
  selected_ = instruction;
  update();
}

QRectF StreamsCanvas::plot() const {
  const double unit = Metrics::current().unit;
  return {7 * unit, 2 * unit, std::max(20.0, width() - 8 * unit), std::max(20.0, height() - 2.6 * unit)};
}

double StreamsCanvas::rowHeight() const { return area().height() / rows(); }

int StreamsCanvas::rowOfLane(int lane) const { return lane == StreamSchedule::kHost ? 0 : lane + (picture_->host ? 1 : 0); }

QRectF StreamsCanvas::rectOf(int instruction) const {
  if (!picture_ || instruction < 0 || instruction >= picture_->plan->size()) return {};
  const StreamSchedule::Slot& slot = picture_->schedule.places[at(instruction)];
  const double x0 = toX(static_cast<double>(slot.begin)), x1 = toX(static_cast<double>(slot.end));
  const double high = rowHeight();
  return {x0, area().top() + rowOfLane(slot.lane) * high + 0.15 * high, std::max(kNarrow, x1 - x0 - 0.7), 0.7 * high};
}

int StreamsCanvas::instructionAt(QPointF pixel) const {
  if (!picture_ || !area().adjusted(-3, 0, 3, 0).contains(pixel)) return -1;
  int hit = -1;
  for (int i = 0; i < picture_->plan->size(); ++i)
    if (!picture_->plan->instruction(i)->view() && rectOf(i).adjusted(-1, 0, 1, 0).contains(pixel)) hit = i;
  return hit;
}

int StreamsCanvas::streamAt(QPointF pixel) const {
  if (!picture_ || pixel.y() < area().top() || pixel.y() >= area().bottom()) return -1;
  const int row = static_cast<int>((pixel.y() - area().top()) / rowHeight()) - (picture_->host ? 1 : 0);
  return row >= 0 && row < picture_->streams ? row : -1;
}

bool StreamsCanvas::canMove(int instruction) const {
  return editable_ && instruction >= 0 && picture_ && picture_->movable[at(instruction)];
}

void StreamsCanvas::hover(QPointF pixel, bool inside) {
  const int hit = inside ? instructionAt(pixel) : -1;
  if (hit == hovered_) return;
  hovered_ = hit;
  setCursor(canMove(hit) ? Qt::OpenHandCursor : hit >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
}

// A box is taken; everything else moves the axis.
void StreamsCanvas::mousePressEvent(QMouseEvent* event) {
  const int hit = event->button() == Qt::LeftButton ? instructionAt(event->position()) : -1;
  dragged_ = canMove(hit) ? hit : -1;
  dragging_ = false;
  pressed_ = pointer_ = event->position();
  AxisCanvas::mousePressEvent(event);
}

void StreamsCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (dragged_ < 0 || !(event->buttons() & Qt::LeftButton)) return AxisCanvas::mouseMoveEvent(event);
  pointer_ = event->position();
  dragging_ = dragging_ || std::abs(pointer_.y() - pressed_.y()) > kDragPixels;
  if (dragging_) setCursor(Qt::ClosedHandCursor);
  update();
}

void StreamsCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const int instruction = std::exchange(dragged_, -1);
  const bool drops = std::exchange(dragging_, false);
  AxisCanvas::mouseReleaseEvent(event);
  update();
  if (!drops || instruction < 0) return;
  setCursor(Qt::ArrowCursor);
  const int stream = streamAt(event->position());
  if (stream >= 0 && stream != picture_->schedule.places[at(instruction)].lane) emit moved(instruction, stream);
}

void StreamsCanvas::keyPressEvent(QKeyEvent* event) {
  const int by = event->key() == Qt::Key_Up ? -1 : event->key() == Qt::Key_Down ? 1 : 0;
  if (by == 0 || !(event->modifiers() & Qt::AltModifier) || !canMove(selected_)) return AxisCanvas::keyPressEvent(event);
  const int stream = picture_->schedule.places[at(selected_)].lane + by;
  if (stream >= 0 && stream < picture_->streams) emit moved(selected_, stream);
  event->accept();
}

QString StreamsCanvas::tipAt(QPointF pixel) const {
  const int hit = instructionAt(pixel);
  if (hit < 0) return {};
  const snapshot::Instruction& in = *picture_->plan->instruction(hit);
  const StreamSchedule::Slot& slot = picture_->schedule.places[at(hit)];
  QStringList lines{
      QStringLiteral("%1  %2").arg(format::count(hit), format::visible(in.label().empty() ? in.op() : in.label())),
      QStringLiteral("%1, from %2 on").arg(format::time(slot.end - slot.begin), format::time(slot.begin))};
  if (slot.critical) lines << QStringLiteral("on the longest chain: sooner here, and the step is shorter");
  for (const StreamSchedule::Wait& wait : picture_->schedule.waits)
    if (wait.to == hit) {
      const snapshot::Instruction& other = *picture_->plan->instruction(wait.from);
      lines << QStringLiteral("waits for %1  %2").arg(format::count(wait.from), format::visible(other.label()));
    }
  if (!in.on_host().empty()) lines << QStringLiteral("on the CPU: %1").arg(format::visible(in.on_host()));
  if (canMove(hit)) lines << QStringLiteral("Drag it to another row, or press Alt+↑ or Alt+↓");
  return lines.join('\n');
}

void StreamsCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintOn(painter);
}

void StreamsCanvas::paintOn(QPainter& p) {
  const Tokens& t = Tokens::current();
  p.fillRect(rect(), t.panel);
  if (!picture_) return;
  p.setFont(text_.font());
  const double unit = Metrics::current().unit, high = rowHeight();
  const QFontMetricsF metrics(text_.font());
  if (const int target = dragging_ ? streamAt(pointer_) : -1; target >= 0)
    p.fillRect(QRectF(0, area().top() + rowOfLane(target) * high, width(), high), t.select);
  for (int row = 0; row < rows(); ++row) {
    const double top = area().top() + row * high;
    p.setPen(t.grid);
    p.drawLine(QPointF(0, top + high - 0.5), QPointF(width(), top + high - 0.5));
    p.setPen(t.text);
    p.drawText(QPointF(0.8 * unit, top + high / 2 + metrics.ascent() / 2 - 1.5),
               picture_->host && row == 0 ? QStringLiteral("CPU")
                                          : QStringLiteral("Stream %1").arg(row - (picture_->host ? 1 : 0)));
  }
  p.setPen(t.muted);
  for (const double tick :
       decimalTicks(viewBegin(), viewEnd(), std::max(2, static_cast<int>(area().width() / (6 * unit))))) {
    p.drawText(QPointF(toX(tick) + 3, 1.4 * unit), format::time(static_cast<std::int64_t>(tick)));
    p.drawLine(QPointF(toX(tick), 1.7 * unit), QPointF(toX(tick), area().top()));
  }
  p.save();
  p.setClipRect(area().adjusted(-2, 0, 2, 0));
  paintBoxes(p, t);
  paintWaits(p, t);
  p.restore();
}

void StreamsCanvas::paintBoxes(QPainter& p, const Tokens& t) {
  for (int i = 0; i < picture_->plan->size(); ++i) {
    const snapshot::Instruction& in = *picture_->plan->instruction(i);
    if (in.view()) continue;
    QRectF box = rectOf(i);
    if (box.right() < area().left() || box.left() > area().right()) continue;
    if (dragging_ && i == dragged_) box.translate(0, pointer_.y() - pressed_.y());
    const bool critical = picture_->schedule.places[at(i)].critical;
    p.fillRect(box, mixed(t.category(picture_->categories[at(i)]), t.panel, critical ? 0.85 : 0.45));
    if (critical && box.width() > 3) {
      p.setPen(QPen(t.text, 1));
      p.setBrush(Qt::NoBrush);
      p.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
    }
    if (i == selected_ || i == hovered_) {
      p.setPen(QPen(t.accent, i == selected_ ? 2 : 1));
      p.setBrush(Qt::NoBrush);
      p.drawRect(box.adjusted(-0.5, -0.5, 0.5, 0.5));
    }
    const QString& name = text_.legible(names::op(in), box.width() - 6);
    if (name.isEmpty()) continue;
    p.setPen(t.text);
    p.drawText(box.adjusted(3, 0, -3, 0), Qt::AlignVCenter | Qt::AlignLeft, name);
  }
}

// All of them as thin lines; those of the selected box stand out.
void StreamsCanvas::paintWaits(QPainter& p, const Tokens& t) {
  p.setRenderHint(QPainter::Antialiasing);
  for (const StreamSchedule::Wait& wait : picture_->schedule.waits) {
    const QRectF from = rectOf(wait.from), to = rectOf(wait.to);
    if (std::max(from.right(), to.left()) < area().left() || std::min(from.right(), to.left()) > area().right()) continue;
    const bool own = wait.from == selected_ || wait.to == selected_;
    p.setPen(QPen(own ? t.accent : t.edge, own ? 2 : 1));
    p.drawLine(QPointF(from.right(), from.center().y()), QPointF(to.left(), to.center().y()));
  }
  p.setRenderHint(QPainter::Antialiasing, false);
}

}  // namespace stepscope
