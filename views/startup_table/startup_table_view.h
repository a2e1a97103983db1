// SPDX-License-Identifier: GPL-3.0-or-later
// The phases of the build as a tree of times, with matches and near misses of the passes.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

class StartupTableView : public TablePanel {
  Q_OBJECT

 public:
  explicit StartupTableView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
};

}  // namespace stepscope
