// SPDX-License-Identifier: GPL-3.0-or-later
// Time per operator, with the whole distribution: count, sum, median, p95, min, max. Follows the selected range of the
// timeline. Where a trace of PyTorch was imported, with theirs, ours and their ratio.
#pragma once

#include "views/common/counted_steps.h"
#include "views/common/step_chooser.h"
#include "views/common/table_panel.h"

namespace stepscope {

class HotOpsView : public TablePanel {
  Q_OBJECT

 public:
  explicit HotOpsView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QWidget* headerWidget() override { return chooser_; }
  QString emptyText() const override;

 protected:
  void refill() override;

 private:
  CountedSteps counted_;
  bool beside_ = false;  // with columns of PyTorch
  StepChooser* chooser_;
};

}  // namespace stepscope
