// SPDX-License-Identifier: GPL-3.0-or-later
// The modules of the model as a tree: nodes, parameters, time and bytes of each, and the nodes themselves as leaves.
#pragma once

#include <QLineEdit>
#include <QTreeWidget>
#include <array>

#include "views/common/view.h"
#include "views/model_tree/module_sums.h"

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
  void resizeEvent(QResizeEvent* event) override;

 private:
  void rebuild();
  void fitColumns();
  void show(std::shared_ptr<const ModuleSums> sums);
  QTreeWidgetItem* makeItem(const QString& path);
  QTreeWidgetItem* itemOf(const QString& path);  // made with those above it when it is not there; nullptr: no such module
  void fill(QTreeWidgetItem* module);            // its parts and its own nodes
  void applyFilter();
  void showSelection();

  QLineEdit* filter_;
  QTreeWidget* tree_;
  QHash<QString, QTreeWidgetItem*> modules_;  // by path; those that were opened so far
  std::shared_ptr<const ModuleSums> sums_;
  std::array<int, 4> widths_{};  // of the columns of numbers; the names have the rest
  bool stale_ = true;
  bool summing_ = false;
  bool selecting_ = false;
};

}  // namespace stepscope
