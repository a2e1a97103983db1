// SPDX-License-Identifier: GPL-3.0-or-later
// The phases of the build as a tree of times, with the same phases in earlier start-ups of the project, and matches and near
// misses of the passes.
#pragma once

#include "views/common/startup_history.h"
#include "views/common/table_panel.h"

namespace stepscope {

class HistoryPlot;
class PassPlaces;

class StartupTableView : public TablePanel {
  Q_OBJECT

 public:
  explicit StartupTableView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
  void fillMenu(QMenu& menu, int row) override;
  void activated(int row) override;

 private:
  void showChosen();  // the history of the chosen phase, and its places where their list is open
  void openPlaces(int column, bool withKeyboard);
  // The graph of a place of the build, in the graph view; without one the node is only selected.
  void showInGraph(const QString& stop, const QString& base, int node);

  HistoryPlot* plot_;
  PassPlaces* places_;
  QStringList paths_;  // of the rows
};

}  // namespace stepscope
