// SPDX-License-Identifier: GPL-3.0-or-later
// Every option of the build: value, default, who set it, what it changed; switches act at the next step boundary.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>

#include "views/common/row_table.h"

namespace stepscope {

class OptionsView : public TablePanel {
  Q_OBJECT

 public:
  explicit OptionsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
  void activated(int row) override;
  void fillMenu(QMenu& menu, int row) override;

 private:
  const snapshot::Option* option(int row) const;
  void showChosen();

  QLabel* name_;
  QLabel* doc_;
  QLabel* proof_;  // of the last change
  QComboBox* value_;
  QPushButton* reset_;
  bool filling_ = false;
};

}  // namespace stepscope
