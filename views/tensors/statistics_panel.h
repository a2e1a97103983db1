// SPDX-License-Identifier: GPL-3.0-or-later
// Histogram and statistics of the shown value.
#pragma once

#include "views/common/details.h"
#include "views/common/snapshot_store.h"
#include "views/tensors/histogram.h"

namespace stepscope {

class StatisticsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit StatisticsPanel(QWidget* parent = nullptr);
  // Hidden while there are none. `step` that they are of; `present`: it is the present one. `tensor` says whether the value
  // is in memory and where its first element that is not finite stands; nullptr: nobody knows.
  void set(const snapshot::TensorStatistics* statistics, std::int64_t step, bool present, const TensorPtr& tensor);

 signals:
  void clampChanged(double low, double high);  // the part of the range that the handles leave
  void elementWanted(const std::vector<qint64>& index);

 private:
  QString first() const;

  Histogram* histogram_;
  Details* text_;
  std::vector<qint64> firstNotFinite_;
};

}  // namespace stepscope
