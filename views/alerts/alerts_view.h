// SPDX-License-Identifier: GPL-3.0-or-later
// NaN, infinities, lost records, aliases … each with a link to the first place.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

class AlertsView : public TablePanel {
  Q_OBJECT

 public:
  explicit AlertsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
};

}  // namespace stepscope
