// SPDX-License-Identifier: GPL-3.0-or-later
// What every option gives: the present step next to the same step with one option changed, asked for with a button. A ranked
// list with the interval of each as a small plot, growing while it is measured; cancelling keeps what was measured. A change
// is applied at once, with proof and undo as any option. A recorded project shows the trials of its run.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>

#include "views/common/study_bar.h"
#include "views/common/view.h"

class QSortFilterProxyModel;
class QSplitter;

namespace stepscope {

class IntervalDelegate;
class RowTableModel;
class RowTableView;
class WhyPanel;

class TrialsView : public View {
  Q_OBJECT

 public:
  explicit TrialsView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QString emptyText() const override;
  void find() override;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makeControls();
  void makeTable();
  void start();
  void apply();
  void takeReport();
  void follow();                          // what stands around the list: options, worker, chosen row
  const snapshot::Trial* chosen() const;  // nullptr: none
  const snapshot::Option* optionOf(const snapshot::Trial& trial) const;
  // Why the change cannot be applied; empty: it can.
  QString refusal(const snapshot::Trial* trial) const;

  QLineEdit* only_;
  QSpinBox *rounds_, *seconds_;
  StudyBar* bar_;
  QPushButton* apply_;
  QToolButton* why_;
  QLabel *summary_, *stale_, *proof_;
  QSplitter* halves_;
  RowTableModel* model_;
  QSortFilterProxyModel* sorted_;
  RowTableView* table_;
  IntervalDelegate* intervals_;
  WhyPanel* reasons_;
  std::pair<bool, int> shown_{false, -1};  // of the session: whether it ran, and how many trials it had
};

}  // namespace stepscope
