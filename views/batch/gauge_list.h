// SPDX-License-Identifier: GPL-3.0-or-later
// One line per quantity of the batch: what it is, how full the gauge stands, and its course over the recorded steps.
#pragma once

#include <QWidget>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

struct Gauge {
  QString title;  // hostile text made visible
  QString text;   // the present reading in words
  QString tip;
  double share = -1;            // 0..1 fills the gauge; below 0 there is no whole to be a part of
  std::vector<double> history;  // one number per step, oldest first
  double top = 0;               // of the history's axis, which begins at 0; 0: the largest of it
  int value = -1;               // input to select with a click
};

// What the recorded steps say of their batches: samples, tokens, densities and lengths, and the row that did worst. The
// readings are those of `of`, of the newest step where it is nullptr; the courses of the last `steps` ones.
std::vector<Gauge> batchGauges(const SnapshotStore& store, std::size_t steps, const snapshot::StepRecord* of = nullptr);

class GaugeList : public QWidget {
  Q_OBJECT

 public:
  explicit GaugeList(QWidget* parent = nullptr);
  void set(std::vector<Gauge> gauges);
  const std::vector<Gauge>& gauges() const { return gauges_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void clicked(int value);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int rowHeight() const;
  int rowAt(const QPoint& at) const;

  std::vector<Gauge> gauges_;
};

}  // namespace stepscope
