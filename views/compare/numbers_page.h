// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers of two runs that part by more than the tolerance, in the order of execution: forward, then backward.
#pragma once

#include "views/common/table_panel.h"

namespace stepscope {

class CompareNumbersPage : public TablePanel {
  Q_OBJECT

 public:
  explicit CompareNumbersPage(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;

 protected:
  void refill() override;
};

}  // namespace stepscope
