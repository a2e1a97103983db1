// SPDX-License-Identifier: GPL-3.0-or-later
// Why an option gives what it gives: what it is, what the roofline expects of it, and of a pass where it applied and where
// it almost did, with the condition that failed. Each place is a way into the graph.
#pragma once

#include <QLabel>

#include "views/common/row_table.h"

namespace stepscope {

class WhyPanel : public QWidget {
  Q_OBJECT

 public:
  explicit WhyPanel(const ViewContext& context, QWidget* parent = nullptr);

  // Nothing is shown for a null trial.
  void show(const snapshot::Trial* trial);

 private:
  bool go(int row);  // to its node; false: there is none
  // What the newest build tells of the pass; nullptr when it did not run.
  const snapshot::PassReport* passOf(const QString& option) const;

  ViewContext context_;
  QLabel* words_;
  RowTableModel* model_;
  RowTableView* table_;
};

}  // namespace stepscope
