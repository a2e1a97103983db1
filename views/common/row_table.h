// SPDX-License-Identifier: GPL-3.0-or-later
// A table of finished rows; table_panel.h has the panel around one.
//
// Rows are made from a snapshot in one go and never change after; a new snapshot makes new rows. Text is in the display
// role, raw numbers in the sort role, and every column has a tooltip that defines it.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <QTableView>
#include <functional>
#include <vector>

#include "views/common/view.h"

namespace stepscope {

struct TableCell {
  TableCell() = default;
  TableCell(QString t) : text(std::move(t)) {}  // NOLINT: cells are mostly plain text
  TableCell(QString t, QVariant sortKey, QString tooltip = {})
      : text(std::move(t)), sort(std::move(sortKey)), tip(std::move(tooltip)) {}

  QString text;
  QVariant sort;   // invalid: by text
  QString tip;     // plain text; empty: the column's
  QString role;    // "muted", "faint", "ok", "warn", "error", "accent", "mono" colour or font; several separated by a space
  QString swatch;  // operator category for the mark before the text
  double share = -1;  // 0..1 draws a bar below the text
};

struct TableRow {
  std::vector<TableCell> cells;
  Selection target;  // what clicking it selects; empty: nothing
  qint64 key = -1;   // of the owner
};

struct TableColumn {
  QString title;
  QString tip;          // defines the quantity and its unit
  bool number = false;  // right aligned
  int width = 8;        // in units of the font height, for a text that has to share its place; see RowTableView
  bool texts = false;   // of numbers: cells that sort by their text are texts, which share their place as others do
};

class RowTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Role { kSortRole = Qt::UserRole, kShareRole, kKeyRole };

  explicit RowTableModel(std::vector<TableColumn> columns, QObject* parent = nullptr);
  void setRows(std::vector<TableRow> rows);
  void setColumns(std::vector<TableColumn> columns, std::vector<TableRow> rows);
  const TableRow& row(int i) const { return rows_[static_cast<std::size_t>(i)]; }
  const std::vector<TableColumn>& columns() const { return columns_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<TableColumn> columns_;
  std::vector<TableRow> rows_;
};

// A table view with our manners: rows of 1.8, elided in the middle, Ctrl+C copies the chosen rows as tab separated text.
//
// Columns are as wide as what stands in them; a number is never cut, in a column of texts neither. Where that is too much,
// texts shrink to their column's width, and columns that do not fit even then lie whole behind the right edge. A column
// moved by hand stays so.
class RowTableView : public QTableView {
  Q_OBJECT

 public:
  explicit RowTableView(QWidget* parent = nullptr);
  void setModel(QAbstractItemModel* model) override;
  void sizeColumns(const std::vector<TableColumn>& columns);
  // Stands in the middle while there are no rows; plain text.
  void setEmptyText(const QString& text);
  QString chosenAsText() const;
  // Of the columns with every number whole and texts at their narrowest.
  int leastWidth() const;

 signals:
  // A person chose the row, by key or mouse: a table that only gets the keyboard has a current row too.
  void chosen(const QModelIndex& at);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void tellChosen();
  void fitColumns();
  enum class Of { kAll, kNumbers };
  int wantedWidth(int column, Of cells = Of::kAll) const;
  int leastWidth(int column) const;
  int titleWidth(int column) const;

  std::vector<TableColumn> columns_;
  QString empty_;
  bool fitting_ = false;
  bool moved_ = false;  // by hand
};

}  // namespace stepscope
