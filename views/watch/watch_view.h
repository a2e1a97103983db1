// SPDX-License-Identifier: GPL-3.0-or-later
// Values whose statistics come with every stop.
#pragma once

#include "views/common/table_panel.h"

namespace stepscope {

class WatchView : public TablePanel {
  Q_OBJECT

 public:
  explicit WatchView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
  void fillMenu(QMenu& menu, int row) override;
};

}  // namespace stepscope
