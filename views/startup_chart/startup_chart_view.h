// SPDX-License-Identifier: GPL-3.0-or-later
// Where the time went from the model file to the first step: the phase tree as a flame chart, passes with matches and near
// misses.
#pragma once

#include "views/common/view.h"
#include "views/drawing/flame_canvas.h"

namespace stepscope {

class StartupChartView : public View {
  Q_OBJECT

 public:
  explicit StartupChartView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QString emptyText() const override;
  void fitAll() override;
  void drawPicture(QPainter& painter) override;

 private:
  void rebuild();
  QString tip(const FlameBox& box) const;

  FlameCanvas* canvas_;
};

}  // namespace stepscope
