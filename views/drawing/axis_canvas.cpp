// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/axis_canvas.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

namespace stepscope {

AxisCanvas::AxisCanvas(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(160, 60);
}

const QRectF& AxisCanvas::area() const {
  if (areaSize_ != size()) {
    area_ = plot();
    areaSize_ = size();
  }
  return area_;
}

double AxisCanvas::toX(double value) const {
  const QRectF& area = this->area();
  return area.x() + (value - begin_) / (end_ - begin_) * area.width();
}

double AxisCanvas::toValue(double x) const {
  const QRectF& area = this->area();
  return begin_ + (x - area.x()) / std::max(1.0, area.width()) * (end_ - begin_);
}

void AxisCanvas::setLimits(double begin, double end) {
  const bool all = showsAll();
  limitBegin_ = begin;
  limitEnd_ = std::max(end, begin + narrowest());
  if (all) {
    begin_ = limitBegin_;
    end_ = limitEnd_;
    update();
    emit viewChanged();
  } else {
    showRange(begin_, end_);
  }
}

void AxisCanvas::showRange(double begin, double end) {
  const double most = limitEnd_ - limitBegin_, least = std::min(narrowest(), most);
  const double span = std::clamp(end - begin, least, most), middle = (begin + end) / 2;
  begin_ = std::clamp(middle - span / 2, limitBegin_, limitEnd_ - span);
  end_ = begin_ + span;
  update();
  emit viewChanged();
}

void AxisCanvas::zoom(double x, double factor) {
  const double at = std::clamp(toValue(x), begin_, end_);
  const double least = std::min(narrowest(), limitEnd_ - limitBegin_);
  factor = std::max(factor, least / (end_ - begin_));
  showRange(at - (at - begin_) * factor, at + (end_ - at) * factor);
}

void AxisCanvas::move(double by) { showRange(begin_ + by, end_ + by); }

void AxisCanvas::mousePressEvent(QMouseEvent* event) {
  button_ = event->button();
  pressedAt_ = lastAt_ = event->position();
  dragging_ = false;
}

void AxisCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (button_ != Qt::LeftButton && button_ != Qt::MiddleButton) {
    hover(event->position(), true);
    return;
  }
  if (!dragging_ && (event->position() - pressedAt_).manhattanLength() < 5) return;
  dragging_ = true;
  if (button_ == Qt::LeftButton && dragPicks(pressedAt_)) {
    const QRectF& area = this->area();
    const double a = toValue(std::clamp(pressedAt_.x(), area.left(), area.right())),
                 b = toValue(std::clamp(event->position().x(), area.left(), area.right()));
    pickBegin_ = std::min(a, b);
    pickEnd_ = std::max(a, b);
    update();
  } else {
    setCursor(Qt::ClosedHandCursor);
    const QPointF by = event->position() - lastAt_;
    move(-by.x() / std::max(1.0, area().width()) * (end_ - begin_));
    if (std::abs(by.y()) > 0) scroll(-by.y());
  }
  lastAt_ = event->position();
}

void AxisCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const bool picked = dragging_ && pickEnd_ > pickBegin_;
  const bool click = !dragging_ && button_ == event->button();
  unsetCursor();
  button_ = Qt::NoButton;
  dragging_ = false;
  if (picked) {
    const double a = pickBegin_, b = pickEnd_;
    pickBegin_ = pickEnd_ = 0;
    update();
    emit rangePicked(a, b);
  } else if (click && event->button() == Qt::LeftButton) {
    emit clicked(event->position(), event->modifiers());
  } else if (click && event->button() == Qt::RightButton) {
    emit menuWanted(event->position(), event->globalPosition().toPoint());
  }
}

void AxisCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) emit doubleClicked(event->position());
}

void AxisCanvas::wheelEvent(QWheelEvent* event) {
  const double turn = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
  if (event->modifiers() & Qt::ControlModifier) {
    zoom(event->position().x(), std::pow(0.9985, turn));
  } else if ((event->modifiers() & Qt::ShiftModifier) || event->angleDelta().y() == 0) {
    move(-turn / 1200.0 * (end_ - begin_));
  } else if (!scroll(-turn / 2)) {
    zoom(event->position().x(), std::pow(0.9985, turn));
  }
  event->accept();
}

void AxisCanvas::keyPressEvent(QKeyEvent* event) {
  const double middle = area().center().x();
  if (event->modifiers() & (Qt::ControlModifier | Qt::AltModifier)) {
    QWidget::keyPressEvent(event);
    return;
  }
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal: zoom(middle, 0.75); break;
    case Qt::Key_S:
    case Qt::Key_Minus: zoom(middle, 1 / 0.75); break;
    case Qt::Key_A:
    case Qt::Key_Left: move((begin_ - end_) * 0.15); break;
    case Qt::Key_D:
    case Qt::Key_Right: move((end_ - begin_) * 0.15); break;
    case Qt::Key_Up: scroll(-30); break;
    case Qt::Key_Down: scroll(30); break;
    case Qt::Key_0:
    case Qt::Key_Home: fit(); break;
    default: QWidget::keyPressEvent(event); return;
  }
  event->accept();
}

void AxisCanvas::leaveEvent(QEvent*) { hover({}, false); }

bool AxisCanvas::event(QEvent* event) {
  if (event->type() == QEvent::FontChange || event->type() == QEvent::ApplicationFontChange) plotChanged();
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const QString text = tipAt(help->pos());
    if (text.isEmpty()) {
      QToolTip::hideText();
    } else {
      QToolTip::showText(help->globalPos(), "<p style='white-space:pre'>" + text.toHtmlEscaped() + "</p>", this);
    }
    return true;
  }
  return QWidget::event(event);
}

}  // namespace stepscope
