// SPDX-License-Identifier: GPL-3.0-or-later
// Boxes in rows by depth over a horizontal axis: a flame chart (x = time) or a flame graph (x = share of a sum).
//
// Boxes narrower than a pixel are merged into one grey box per run, so a frame costs what is seen. Click chooses, double
// click zooms to a box, on empty space shows all.
#pragma once

#include <QString>
#include <functional>
#include <unordered_set>
#include <vector>

#include "views/drawing/axis_canvas.h"
#include "views/drawing/text_cache.h"

namespace stepscope {

struct FlameBox {
  double begin = 0, end = 0;
  int depth = 0;
  QString name;        // harmless text
  QString detail;      // after the name where there is room
  QString colourName;  // Tokens::forName; empty: neutral
  QString category;    // Tokens::category when not empty
  bool failed = false;
  int id = -1;  // caller's
};

class FlameCanvas : public AxisCanvas {
  Q_OBJECT

 public:
  explicit FlameCanvas(QWidget* parent = nullptr);

  // Boxes of one depth must not overlap. `axis` turns a value into the text of a tick; empty: no axis is drawn.
  void setBoxes(std::vector<FlameBox> boxes, std::function<QString(double)> axis,
                std::function<QString(const FlameBox&)> tip);
  void setSelected(int id);
  // Boxes that hold something of the selection, by id.
  void setMarked(std::unordered_set<int> ids);
  const std::unordered_set<int>& marked() const { return marked_; }
  void paintOn(QPainter& painter);
  int rows() const { return depth_; }
  QSize sizeHint() const override;

 signals:
  void chosen(int id);

 protected:
  QRectF plot() const override;
  void hover(QPointF pixel, bool inside) override;
  bool scroll(double pixels) override;
  double narrowest() const override { return narrowest_; }
  QString tipAt(QPointF pixel) const override;
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { scroll(0); }

 private:
  int boxAt(QPointF pixel) const;
  double rowHeight() const;

  std::vector<FlameBox> boxes_;  // by depth, then begin
  std::vector<std::size_t> rowStart_;
  std::unordered_set<int> marked_;
  std::function<QString(double)> axis_;
  std::function<QString(const FlameBox&)> tip_;
  int depth_ = 0, selected_ = -1, hovered_ = -1;
  double offset_ = 0, narrowest_ = 1;
  TextCache text_;
};

}  // namespace stepscope
