// SPDX-License-Identifier: GPL-3.0-or-later
// Paints a memory model: boxes by class, the cursor at the current instruction, the peak and its owners, the selected buffer
// with its readers and writers. Knows no store; MemoryView connects it.
//
// Besides the keys of AxisCanvas: Ctrl+Shift+wheel zooms the addresses, dragging then also moves them; 0 shows all.
#pragma once

#include <memory>

#include "views/common/tokens.h"
#include "views/drawing/axis_canvas.h"
#include "views/drawing/text_cache.h"
#include "views/memory/memory_model.h"

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
  double narrowest() const override { return 8; }
  bool scroll(double pixels) override;
  QString tipAt(QPointF pixel) const override;
  void paintEvent(QPaintEvent*) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  double toY(double bytes) const;
  double toUnits(double bytes) const;  // bytes, those below the arena scaled by squeeze_
  double toBytes(double units) const;
  double toUnitsAt(double y) const;
  double unitsTop() const;
  void clampAddresses();
  QRectF rectOf(const MemoryBox& box) const;
  void paintAxes(QPainter& p, const Tokens& t);
  void paintBoxes(QPainter& p, const Tokens& t);
  void paintBands(QPainter& p, const Tokens& t);
  void paintSelected(QPainter& p, const Tokens& t);
  void paintMarks(QPainter& p, const Tokens& t);
  void paintLegend(QPainter& p, const Tokens& t);
  QString instructionName(int index) const;

  std::shared_ptr<const MemoryModel> model_;
  int current_ = -1, selected_ = -1, selectedInstruction_ = -1, hovered_ = -1;
  std::int64_t measured_ = 0;
  double squeeze_ = 1;         // persistent memory never takes most of the height
  double low_ = 0, high_ = 1;  // shown addresses, in units
  TextCache text_;
};

}  // namespace stepscope
