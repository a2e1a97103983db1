// SPDX-License-Identifier: GPL-3.0-or-later
// The 64 bins of TensorStatistics as bars. The ends can be clamped by dragging; a click switches log and linear counts.
#pragma once

#include <QWidget>
#include <optional>

#include "engine/snapshot/tensor.pb.h"

namespace stepscope {

class Histogram : public QWidget {
  Q_OBJECT

 public:
  explicit Histogram(QWidget* parent = nullptr);
  void set(std::optional<snapshot::TensorStatistics> statistics, bool old);
  void setLogarithmic(bool on);
  bool logarithmic() const { return logarithmic_; }
  // Shares of the range that are left out at both ends, 0..1.
  std::pair<double, double> clampRange() const { return {low_, high_}; }
  QSize sizeHint() const override;

 signals:
  void clampChanged(double low, double high);  // values at the handles

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plot() const;
  double valueAt(double share) const;

  std::optional<snapshot::TensorStatistics> statistics_;
  bool old_ = false;
  bool logarithmic_ = true;
  double low_ = 0, high_ = 1;
  int dragged_ = -1;
};

}  // namespace stepscope
