// SPDX-License-Identifier: GPL-3.0-or-later
// The processes of a recorded run next to each other: time, waiting and memory of each as a row, below them its collectives.
#pragma once

#include <QLabel>

#include "views/common/table_panel.h"

namespace stepscope {

class RanksView : public TablePanel {
  Q_OBJECT

 public:
  explicit RanksView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;

 protected:
  void refill() override;

 private:
  void showCollective(const QModelIndex& at);

  QLabel* summary_;
  RowTableModel* collectives_;
  RowTableView* collectiveTable_;
};

}  // namespace stepscope
