// SPDX-License-Identifier: GPL-3.0-or-later
// The execution plan as a list with breakpoints, the current arrow, times and bytes.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QListView>

#include "views/common/view.h"
#include "views/instructions/instruction_model.h"

namespace stepscope {

class InstructionsView : public View {
  Q_OBJECT

 public:
  explicit InstructionsView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QString emptyText() const override;
  void find() override;
  void focusSelection() override;
  QString saveState() const override;
  void restoreState(const QString& state) override;

 private:
  void applyFilter();
  void showSelection(bool centre);
  void showMenu(const QPoint& at);

  InstructionModel* model_;
  QLineEdit* filter_;
  QLabel* problem_;
  QListView* list_;
  bool selecting_ = false;
};

}  // namespace stepscope
