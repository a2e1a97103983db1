// SPDX-License-Identifier: GPL-3.0-or-later
// Where a pass applied and where it almost did: a list below the table of phases, each line a way into the graph. It is
// closed until somebody opens it, and then follows the chosen phase.
#pragma once

#include <QLabel>

#include "views/common/row_table.h"

namespace stepscope {

class PassPlaces : public QWidget {
  Q_OBJECT

 public:
  enum class Kind { kAll, kMatches, kNearMisses };

  explicit PassPlaces(const ViewContext& context, QWidget* parent = nullptr);

  // Of the span at this index of the store's phases; -1, or one that is no pass, lists nothing and says so.
  void show(int span);
  // Opens it, its first line of that kind the current one.
  void open(Kind kind, bool withKeyboard);
  QSize sizeHint() const override;

 signals:
  // The graph of a place of the build: see Wishes::showStop. An empty stop: the node is one of the graph that runs.
  void goWanted(const QString& stop, const QString& base, int node);

 private:
  void go(int row);
  // A line of the list for a node that the pass made, or left alone.
  void addNode(std::vector<TableRow>& rows, Kind kind, int node, const QString& why);

  struct Place {
    Kind kind = Kind::kAll;
    QString stop, base;
    int node = -1;
    bool possible = false;
  };
  ViewContext context_;
  QLabel* title_;
  RowTableModel* model_;
  RowTableView* table_;
  QString before_;             // the stop that the pass found
  std::vector<Place> places_;  // of the lines
};

}  // namespace stepscope
