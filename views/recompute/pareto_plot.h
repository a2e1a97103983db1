// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against time: what budgets would give as a line, what ran in this session as points, and the choice at hand as a
// ring.
#pragma once

#include <qcustomplot.h>

#include <memory>
#include <optional>

#include "engine/snapshot/recompute.pb.h"

namespace stepscope {

class ParetoPlot : public QCustomPlot {
  Q_OBJECT

 public:
  explicit ParetoPlot(QWidget* parent = nullptr);

  void setReport(const std::shared_ptr<const snapshot::RecomputeReport>& report);
  void setChoice(const std::optional<snapshot::RecomputePoint>& point);
  void colour();  // after the theme changed
  // What the point nearest to this pixel is, as text; empty when none is near. `point`: its place in the curve, -1 for
  // others.
  QString textAt(QPointF pixel, int* point = nullptr) const;

 signals:
  void pointPicked(int point);  // of the report's curve

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  void fit();
  double bytesOf(std::int64_t bytes) const { return static_cast<double>(bytes) / byteUnit_; }

  std::shared_ptr<const snapshot::RecomputeReport> report_;
  std::optional<snapshot::RecomputePoint> choice_;
  double byteUnit_ = 1, timeUnit_ = 1;
  QCPGraph *predicted_, *measured_, *present_, *chosen_;
  QCPErrorBars* spread_;
};

}  // namespace stepscope
