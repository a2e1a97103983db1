// SPDX-License-Identifier: GPL-3.0-or-later
// What the present step is spent on, asked for with a button: the sums as bars, the lines by module, op, phase, source line
// or instruction, and what would shrink them with the trial that confirms it. A recorded project shows the newest ledger of
// its run.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>

#include "views/common/study_bar.h"
#include "views/common/table_panel.h"
#include "views/ledger/ledger_rows.h"

namespace stepscope {

class SpentBars;

class LedgerView : public TablePanel {
  Q_OBJECT

 public:
  explicit LedgerView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  QString saveState() const override;
  void restoreState(const QString& state) override;

 protected:
  void refill() override;
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makeTop();
  QWidget* makeAdvice();
  void follow();  // what stands around the lines
  void confirm();
  ledger::By by() const;
  const snapshot::LedgerAdvice* chosen() const;  // nullptr: none

  StudyBar* bar_;
  QPushButton* confirm_;
  QComboBox* by_;
  QLabel *summary_, *warning_, *noAdvice_;
  SpentBars* bars_;
  QWidget* advice_;
  RowTableModel* adviceModel_;
  RowTableView* adviceTable_;
};

}  // namespace stepscope
