// SPDX-License-Identifier: GPL-3.0-or-later
// The runs of the project: when, how many steps, how fast, how the loss went; and which two stand in Compare.
#pragma once

#include <QPushButton>

#include "views/common/table_panel.h"

namespace stepscope {

class RunsView : public TablePanel {
  Q_OBJECT

 public:
  explicit RunsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  QString headerText() const override;
  QWidget* headerWidget() override { return controls_; }

 protected:
  void refill() override;
  void activated(int row) override;
  void fillMenu(QMenu& menu, int row) override;

 private:
  void compare(qint64 a, qint64 b);  // 0: as it is
  static qint64 recordedRun(const std::vector<RunEntry>& runs);
  void askToDelete(qint64 run);
  void followReading();

  QWidget* controls_;
  QPushButton* cancel_;
};

}  // namespace stepscope
