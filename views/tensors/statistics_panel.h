// SPDX-License-Identifier: GPL-3.0-or-later
// Histogram and statistics of the shown value.
#pragma once

#include "views/common/details.h"
#include "views/tensors/histogram.h"

namespace stepscope {

class StatisticsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit StatisticsPanel(QWidget* parent = nullptr);
  // Hidden while there are none. `old`: of contents that an earlier step computed.
  void set(const snapshot::TensorStatistics* statistics, bool old);

 signals:
  void clampChanged(double low, double high);  // the part of the range that the handles leave

 private:
  Histogram* histogram_;
  Details* text_;
};

}  // namespace stepscope
