// SPDX-License-Identifier: GPL-3.0-or-later
// All breakpoints: on an instruction, a node, an operator, a phase, NaN, new infinities, or a condition on a tensor.
#pragma once

#include <QComboBox>
#include <QLineEdit>

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

  QComboBox* kind_;
  QLineEdit* text_;
};

}  // namespace stepscope
