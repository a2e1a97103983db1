// SPDX-License-Identifier: GPL-3.0-or-later
// Times or bytes of two runs in one table: operators, phases of the step, the build, memory.
#pragma once

#include "views/common/run_times.h"
#include "views/common/table_panel.h"
#include "views/compare/time_rows.h"

namespace stepscope {

class CompareTimesPage : public TablePanel {
  Q_OBJECT

 public:
  CompareTimesPage(const ViewContext& context, Times which, QWidget* parent = nullptr);
  QString emptyText() const override;
  QString headerText() const override;

 protected:
  void refill() override;

 private:
  PairTimes times() const;  // see PairTimes

  Times which_;
};

}  // namespace stepscope
