// SPDX-License-Identifier: GPL-3.0-or-later
// Flame graph of the recorded steps by phase, module and operator; follows the range picked in the timeline.
#pragma once

#include <QThreadPool>
#include <QTimer>

#include "views/common/counted_steps.h"
#include "views/common/step_chooser.h"
#include "views/common/view.h"
#include "views/drawing/flame_canvas.h"
#include "views/flame/flame_model.h"

namespace stepscope {

class FlameView : public View {
  Q_OBJECT

 public:
  explicit FlameView(const ViewContext& context, QWidget* parent = nullptr);
  ~FlameView() override;

  QString headerText() const override;
  QWidget* headerWidget() override { return chooser_; }
  QString emptyText() const override;
  void fitAll() override;
  void drawPicture(QPainter& painter) override;

 signals:
  void modelReady();

 private:
  void rebuild();
  void showTree(FlameTree tree);
  void markSelection();

  FlameCanvas* canvas_;
  StepChooser* chooser_;
  QTimer soon_;
  QThreadPool pool_;
  FlameTree tree_;
  CountedSteps counted_;
  int request_ = 0;
};

}  // namespace stepscope
