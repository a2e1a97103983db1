// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over the extent of a dimension: what the step needs as it is and with recompute, and the memory there is as a line.
#pragma once

#include <qcustomplot.h>

#include "engine/snapshot/lab.pb.h"

namespace stepscope {

class FrontierPlot : public QCustomPlot {
  Q_OBJECT

 public:
  explicit FrontierPlot(QWidget* parent = nullptr);
  void show(const snapshot::CapacityReport& report);
  void colour();  // after the theme changed

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QCPGraph *plain_, *recompute_, *memory_;
};

}  // namespace stepscope
