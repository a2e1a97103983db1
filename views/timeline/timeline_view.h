// SPDX-License-Identifier: GPL-3.0-or-later
// The recorded steps over time. A picked range goes into the shared selection; flame graph and tables follow it.
#pragma once

#include <QThreadPool>
#include <QTimer>

#include "views/common/step_chooser.h"
#include "views/common/view.h"
#include "views/timeline/timeline_canvas.h"

namespace stepscope {

class TimelineView : public View {
  Q_OBJECT

 public:
  explicit TimelineView(const ViewContext& context, QWidget* parent = nullptr);
  ~TimelineView() override;

  QString headerText() const override;
  QWidget* headerWidget() override { return chooser_; }
  QString emptyText() const override;
  void focusSelection() override;
  void fitAll() override;
  void drawPicture(QPainter& painter) override;

  TimelineCanvas& canvas() { return *canvas_; }

 signals:
  void modelReady();

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void rebuild();
  void showSelection();
  void mark();

  TimelineCanvas* canvas_;
  StepChooser* chooser_;
  QTimer soon_;
  QThreadPool pool_;
  int request_ = 0;
  bool elsewhere_ = false;  // the next model is of another time than the one that is shown
};

}  // namespace stepscope
