// SPDX-License-Identifier: GPL-3.0-or-later
// What two runs were told differently.
#pragma once

#include "views/common/table_panel.h"

namespace stepscope {

class CompareSettingsPage : public TablePanel {
  Q_OBJECT

 public:
  explicit CompareSettingsPage(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
};

}  // namespace stepscope
