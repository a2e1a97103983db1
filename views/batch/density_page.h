// SPDX-License-Identifier: GPL-3.0-or-later
// Samples, lengths and densities as gauges over the steps, and what the build decided from them.
#pragma once

#include "views/batch/batch_source.h"
#include "views/batch/gauge_list.h"
#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class DensityPage : public QWidget {
  Q_OBJECT

 public:
  // Both outlive the page.
  DensityPage(const ViewContext& context, const BatchSource& source, QWidget* parent = nullptr);
  void refresh();

 private:
  void fillCost();
  void fillDecisions();

  ViewContext context_;
  const BatchSource& source_;
  GaugeList* gauges_;
  Details* cost_;
  Details* decisions_;
};

}  // namespace stepscope
