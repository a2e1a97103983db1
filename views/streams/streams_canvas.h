// SPDX-License-Identifier: GPL-3.0-or-later
// Streams as rows, instructions as boxes along the time at which they would run, the longest chain outlined, waits between
// rows as lines. A box that is dragged to another row, or moved there with Alt+↑ and Alt+↓, is told with moved(). Knows no
// store; StreamsView connects it.
#pragma once

#include <memory>

#include "views/drawing/axis_canvas.h"
#include "views/drawing/text_cache.h"
#include "views/streams/stream_schedule.h"

namespace stepscope {

// What is shown, never changed afterwards.
struct StreamPicture {
  std::shared_ptr<const PlanSnapshot> plan;
  std::vector<QString> categories;  // by instruction
  std::vector<bool> movable;        // by instruction: a kernel of the device with a node that has a name
  StreamSchedule schedule;
  int streams = 1;
  bool host = false;  // some run on the CPU: its row is the first one
};

class StreamsCanvas : public AxisCanvas {
  Q_OBJECT

 public:
  explicit StreamsCanvas(QWidget* parent = nullptr);
  void setPicture(std::shared_ptr<const StreamPicture> picture);
  const std::shared_ptr<const StreamPicture>& picture() const { return picture_; }
  void setSelected(int instruction);
  void setEditable(bool editable) { editable_ = editable; }

  int instructionAt(QPointF pixel) const;  // -1
  int streamAt(QPointF pixel) const;       // -1: no row of a stream
  QRectF rectOf(int instruction) const;
  void paintOn(QPainter& painter);
  QSize sizeHint() const override { return {640, 220}; }

 signals:
  void moved(int instruction, int stream);

 protected:
  QRectF plot() const override;
  void hover(QPointF pixel, bool inside) override;
  QString tipAt(QPointF pixel) const override;
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  int rows() const { return picture_ ? picture_->streams + (picture_->host ? 1 : 0) : 1; }
  int rowOfLane(int lane) const;
  double rowHeight() const;
  bool canMove(int instruction) const;
  void paintBoxes(QPainter& p, const struct Tokens& t);
  void paintWaits(QPainter& p, const struct Tokens& t);

  std::shared_ptr<const StreamPicture> picture_;
  bool editable_ = false;
  int selected_ = -1, hovered_ = -1;
  int dragged_ = -1;  // the instruction under a pressed button
  bool dragging_ = false;
  QPointF pressed_, pointer_;
  TextCache text_;
};

}  // namespace stepscope
