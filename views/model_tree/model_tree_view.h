// SPDX-License-Identifier: GPL-3.0-or-later
// The modules of the model as a tree: nodes, parameters, time and bytes of each, and the nodes themselves as leaves.
#pragma once

#include <QLineEdit>
#include <QTreeWidget>

#include "views/common/view.h"

namespace stepscope {

class ModelTreeView : public View {
  Q_OBJECT

 public:
  explicit ModelTreeView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  void find() override;
  void enterGroup() override;
  void leaveGroup() override;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void rebuild();
  void addNodes(QTreeWidgetItem* module);
  void applyFilter();
  void showSelection();

  QLineEdit* filter_;
  QTreeWidget* tree_;
  QHash<QString, QTreeWidgetItem*> modules_;
  QHash<QString, std::vector<int>> nodesOf_;  // module path → node ids of the forward phase
  bool stale_ = true;
  bool selecting_ = false;
};

}  // namespace stepscope
