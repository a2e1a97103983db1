// SPDX-License-Identifier: GPL-3.0-or-later
// The losses of two runs over the same steps, and below them what parts them: loss and gradient norm, B - A.
#pragma once

#include <qcustomplot.h>

#include "views/common/run_comparison.h"

namespace stepscope {

class CompareCurves : public QCustomPlot {
  Q_OBJECT

 public:
  explicit CompareCurves(QWidget* parent = nullptr);
  void setComparison(RunComparisonPtr comparison);  // nullptr empties it
  void setLogarithmic(bool on);
  void fit();

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void colour();
  static void scale(QCPAxis& axis, bool any);
  QString tip(double at);
  void placeTexts();  // broken into lines where the panel is narrow

  RunComparisonPtr comparison_;
  double largestNorm_ = 0, largestLoss_ = 0;  // of run A where both have one
  QCPAxisRect *upper_, *lower_;
  QCPGraph *lossA_, *lossB_, *lossBy_, *normBy_;
  QCPItemStraightLine *cursor_, *first_;
  QCPItemText* note_;
  QString below_, over_;  // texts: below the lower plot, and in it
};

}  // namespace stepscope
