// SPDX-License-Identifier: GPL-3.0-or-later
// The panel most views are: filter line, table of finished rows, count.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <vector>

#include "views/common/row_table.h"
#include "views/common/view.h"

class QVBoxLayout;

namespace stepscope {

class TablePanel : public View {
  Q_OBJECT

 public:
  TablePanel(const ViewContext& context, const QString& id, const QString& title, std::vector<TableColumn> columns,
             QWidget* parent = nullptr);

  QString headerText() const override;
  void find() override;
  QString saveState() const override;
  void restoreState(const QString& state) override;

 protected:
  void setRows(std::vector<TableRow> rows);
  void setColumns(std::vector<TableColumn> columns, std::vector<TableRow> rows);
  const RowTableModel& model() const { return *model_; }
  RowTableView* table() const { return table_; }
  QVBoxLayout* body() const { return body_; }  // filter line, table; panels add their controls
  void setFilterPlaceholder(const QString& text);
  // Stands in the table while it has no rows and the panel has other things to show; see also View::emptyText.
  void setNothingText(const QString& text);
  void sortBy(int column, Qt::SortOrder order);
  // Row of the model under the cursor of the keyboard; -1 none.
  int chosenRow() const;
  // Called with a double click or Enter.
  virtual void activated(int row) { Q_UNUSED(row); }
  // Fills a context menu.
  virtual void fillMenu(QMenu& menu, int row) {
    Q_UNUSED(menu);
    Q_UNUSED(row);
  }
  // Calls `refill` in a later turn of the loop when the panel is visible, else when it is shown: hidden views cost nothing.
  void refillLater();
  virtual void refill() {}
  void showEvent(QShowEvent* event) override;

 private:
  void followSelection();
  void tellNothing();

  RowTableModel* model_;
  QSortFilterProxyModel* proxy_;
  QLineEdit* filter_;
  RowTableView* table_;
  QVBoxLayout* body_;
  QString nothing_;
  bool selecting_ = false;
  bool stale_ = true;
  bool queued_ = false;
};

}  // namespace stepscope
