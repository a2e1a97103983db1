// SPDX-License-Identifier: GPL-3.0-or-later
// Loss, learning rate and gradient norm over steps.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QToolButton>

#include "views/common/view.h"

class QCustomPlot;
class QCPItemStraightLine;
class QCPGraph;
class QCPItemText;

namespace stepscope {

class TrainingView : public View {
  Q_OBJECT

 public:
  explicit TrainingView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QWidget* headerWidget() override { return controls_; }
  QString emptyText() const override;
  void fitAll() override;
  void drawPicture(QPainter& painter) override;

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void refill();
  void colour();
  void mark();  // steps whose numbers were not finite

  QWidget* controls_;
  QToolButton* logarithmic_;
  QToolButton* smooth_;
  QCustomPlot* plot_;
  QCPGraph *loss_, *smoothLoss_, *rate_, *norm_;
  QCPItemStraightLine* cursor_;
  std::vector<QCPItemStraightLine*> marks_;
  std::vector<QCPItemText*> markTexts_;
  bool stale_ = true;
  QElapsedTimer refilled_;
  QTimer later_;
};

}  // namespace stepscope
