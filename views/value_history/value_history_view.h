// SPDX-License-Identifier: GPL-3.0-or-later
// Parameters, gradients and module outputs over the recorded steps: their norms and ranges as a table, and the curve of the
// chosen one.
#pragma once

#include "views/common/table_panel.h"
#include "views/value_history/value_series.h"

class QSplitter;
class QCustomPlot;
class QCPGraph;

namespace stepscope {

class ValueHistoryView : public TablePanel {
  Q_OBJECT

 public:
  explicit ValueHistoryView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  const std::vector<ValueSeries>& series() const { return series_; }
  int shown() const { return shown_; }  // index into series(); -1 none

 protected:
  void refill() override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void makePlot();
  void colour();
  void plot();

  std::vector<ValueSeries> series_;
  int shown_ = -1;
  QSplitter* splitter_;
  QCustomPlot* plot_;
  QCPGraph *norm_, *least_, *most_, *mean_, *bad_;
};

}  // namespace stepscope
