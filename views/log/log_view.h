// SPDX-License-Identifier: GPL-3.0-or-later
// Every record of the worker and of the window. Filters hide and say how many; nothing is dropped before 100,000 lines.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

class LogView : public TablePanel {
  Q_OBJECT

 public:
  explicit LogView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
};

}  // namespace stepscope
