// SPDX-License-Identifier: GPL-3.0-or-later
// Base of widgets whose horizontal axis can be zoomed and moved: timeline, memory map, flame charts.
//
// Keys: W/S zoom, A/D move, ←/→ move, + and −, 0 or Home shows all. Ctrl+wheel zooms at the pointer, Shift+wheel moves; the
// plain wheel is left to the subclass (scrolling rows), or zooms where there is nothing to scroll. Dragging moves, or picks
// a range where the subclass says so; the middle button always moves.
#pragma once

#include <QWidget>

namespace stepscope {

class AxisCanvas : public QWidget {
  Q_OBJECT

 public:
  explicit AxisCanvas(QWidget* parent = nullptr);

  double viewBegin() const { return begin_; }
  double viewEnd() const { return end_; }
  double limitBegin() const { return limitBegin_; }
  double limitEnd() const { return limitEnd_; }
  // The whole axis. The view is kept where it makes sense, unless it showed everything.
  void setLimits(double begin, double end);
  void showRange(double begin, double end);
  void fit() { showRange(limitBegin_, limitEnd_); }
  bool showsAll() const { return begin_ <= limitBegin_ && end_ >= limitEnd_; }

 signals:
  void viewChanged();
  void rangePicked(double begin, double end);  // begin < end
  void clicked(QPointF pixel, Qt::KeyboardModifiers modifiers);
  void doubleClicked(QPointF pixel);
  void menuWanted(QPointF pixel, const QPoint& globalPosition);

 protected:
  virtual QRectF plot() const = 0;  // where the axis lives, in pixels; asked once per size
  const QRectF& area() const;       // plot(), remembered
  void plotChanged() { areaSize_ = QSize(); }
  virtual bool dragPicks(QPointF) const { return false; }
  virtual void hover(QPointF, bool inside) { Q_UNUSED(inside); }
  virtual bool scroll(double pixels) {
    Q_UNUSED(pixels);
    return false;
  }                                               // false: nothing to scroll
  virtual double narrowest() const { return 1; }  // shortest range that can be shown
  virtual QString tipAt(QPointF) const { return {}; }

  double toX(double value) const;
  double toValue(double x) const;
  // The range being dragged; begin == end when there is none.
  double pickBegin() const { return pickBegin_; }
  double pickEnd() const { return pickEnd_; }

  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent*) override;
  bool event(QEvent* event) override;

 private:
  void zoom(double x, double factor);
  void move(double by);

  double limitBegin_ = 0, limitEnd_ = 1, begin_ = 0, end_ = 1;
  mutable QRectF area_;
  mutable QSize areaSize_;
  QPointF pressedAt_, lastAt_;
  double pickBegin_ = 0, pickEnd_ = 0;
  Qt::MouseButton button_ = Qt::NoButton;
  bool dragging_ = false;
};

}  // namespace stepscope
