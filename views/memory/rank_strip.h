// SPDX-License-Identifier: GPL-3.0-or-later
// The peaks of the processes of a run below the map, which is that of rank 0: per rank a line with its planned peak as an
// outline and the measured one as a bar, on one scale from 0. Hidden for a run of one process. Knows no store.
#pragma once

#include <QWidget>
#include <vector>

#include "views/common/rank_times.h"

namespace stepscope {

class RankStrip : public QWidget {
  Q_OBJECT

 public:
  static constexpr std::size_t kMost = 8;  // lines; of more ranks those with the largest measured peak

  explicit RankStrip(QWidget* parent = nullptr);
  void setRanks(const std::vector<RankTotals>& ranks);
  const std::vector<RankTotals>& shown() const { return shown_; }  // by rank
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int rowHeight() const;
  QString title() const;

  std::vector<RankTotals> shown_;
  std::size_t all_ = 0;
};

}  // namespace stepscope
