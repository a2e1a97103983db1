// SPDX-License-Identifier: GPL-3.0-or-later
// All breakpoints: on an instruction, a node, an operator, a phase, NaN, new infinities, or a condition on a tensor. What is
// refused stays in its field, with the reason below it.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QStringListModel>

#include "views/common/table_panel.h"

namespace stepscope {

class BreakpointsView : public TablePanel {
  Q_OBJECT

 public:
  explicit BreakpointsView(const ViewContext& context, QWidget* parent = nullptr);

 protected:
  void refill() override;
  void activated(int row) override;
  void fillMenu(QMenu& menu, int row) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // keys of the table: Space switches, Del removes

 private:
  void add();
  void refuse(const QString& why);  // empty: nothing is wrong
  void showRefused();
  void offer();  // what can follow what was typed
  QStringList offers(const QString& typed) const;

  QComboBox* kind_;
  QLineEdit* text_;
  QLabel* problem_;
  QStringListModel offers_;
};

}  // namespace stepscope
