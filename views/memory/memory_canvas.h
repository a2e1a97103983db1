// SPDX-License-Identifier: GPL-3.0-or-later
// The widget that shows a memory model: zoom of both axes, hover, click; MemoryPainter paints it. Knows no store; MemoryView
// connects it.
//
// Besides the keys of AxisCanvas: Ctrl+Shift+wheel zooms the addresses, dragging then also moves them; 0 shows all.
#pragma once

#include <memory>

#include "views/drawing/axis_canvas.h"
#include "views/memory/memory_painter.h"

namespace stepscope {

class MemoryCanvas : public AxisCanvas {
  Q_OBJECT

 public:
  explicit MemoryCanvas(QWidget* parent = nullptr);

  void setModel(std::shared_ptr<const MemoryModel> model);
  const std::shared_ptr<const MemoryModel>& model() const { return model_; }
  void setCurrent(int instruction);  // -1 none
  void setSelected(int buffer, int instruction);
  void setMeasured(std::int64_t bytes);  // of the last step; 0 unknown
  void showBuffer(int buffer);
  void fitAll();

  int bufferAt(QPointF pixel) const;       // -1
  int instructionAt(QPointF pixel) const;  // -1 outside
  void paintOn(QPainter& painter);
  QSize sizeHint() const override { return {640, 200}; }

 protected:
  QRectF plot() const override;
  void hover(QPointF pixel, bool inside) override;
  double narrowest() const override;  // a plan of few instructions whole
  bool scroll(double pixels) override;
  QString tipAt(QPointF pixel) const override;
  void paintEvent(QPaintEvent*) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  MemoryScale scale() const;
  double unitsTop() const;
  void clampAddresses();

  std::shared_ptr<const MemoryModel> model_;
  MemoryPaintState state_;
  double squeeze_ = 1;         // persistent memory never takes most of the height
  double low_ = 0, high_ = 1;  // shown addresses, in units
  TextCache text_;
};

}  // namespace stepscope
