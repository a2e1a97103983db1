// SPDX-License-Identifier: GPL-3.0-or-later
// Read-only SQL over the project: the tables with their documentation, an editor, the result as a table, export as CSV.
#pragma once

#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTreeWidget>

#include "views/common/row_table.h"

namespace stepscope {

class SqlCompleter;

class SqlView : public View {
  Q_OBJECT

 public:
  explicit SqlView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  void find() override;
  QString saveState() const override;
  void restoreState(const QString& state) override;

 private:
  void run();
  void showAnswer();
  void showTables();
  QString asCsv() const;

  QTreeWidget* tables_;
  QPlainTextEdit* editor_;
  QPushButton *run_, *cancel_, *export_;
  QLabel* state_;
  SqlCompleter* completer_;
  RowTableModel* model_;
  RowTableView* result_;
};

}  // namespace stepscope
