// SPDX-License-Identifier: GPL-3.0-or-later
// The memory map of the plan: what lies where and when, and why. Follows the selection and the current instruction.
#pragma once

#include "views/common/view.h"
#include "views/memory/memory_canvas.h"
#include "views/memory/rank_strip.h"

namespace stepscope {

class MemoryView : public View {
  Q_OBJECT

 public:
  explicit MemoryView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QString emptyText() const override;
  void focusSelection() override;
  void fitAll() override;
  void drawPicture(QPainter& painter) override;

  MemoryCanvas& canvas() { return *canvas_; }
  const RankStrip& ranks() const { return *ranks_; }

 private:
  void planChanged();
  void showSelection();
  void stepsChanged();
  void showMenu(QPointF pixel, const QPoint& at);

  MemoryCanvas* canvas_;
  RankStrip* ranks_;
};

}  // namespace stepscope
