// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against time: what budgets would give as a line, what ran in this session as points, and the choice at hand as a
// ring. The line is dashed, and says so, where its times are no medians of warm steps. Points of plans before the present
// one have their own mark and the time of day; where the line is an estimate they are left out, as are those of a single
// cold step.
#pragma once

#include <qcustomplot.h>

#include <memory>
#include <optional>

#include "engine/snapshot/recompute.pb.h"

namespace stepscope {

// What the times of a report are: "costs of 9 steps", "costs of 1 step, cold", "costs estimated". The first step under a
// plan is cold: it takes longer than those after it.
QString costBasis(const snapshot::RecomputeReport& report);

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
