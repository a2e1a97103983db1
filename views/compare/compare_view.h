// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs of the project side by side: which they are, how they went, their losses over each other.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

#include "views/common/row_table.h"
#include "views/compare/compare_curves.h"

namespace stepscope {

class CompareView : public View {
  Q_OBJECT

 public:
  explicit CompareView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QWidget* headerWidget() override { return controls_; }
  QString emptyText() const override;
  void fitAll() override { curves_->fit(); }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void fillRuns();  // the lists, and the pair when nobody has picked one
  void pick();      // what the lists say
  void ask(const CompareRequest& request);
  void showResult();

  QWidget* controls_;
  QToolButton* logarithmic_;
  QPushButton* other_;
  QComboBox *a_, *b_;
  QToolButton* swap_;
  QLabel* error_;
  QLabel* note_;  // why times say little, and why bits may differ
  RowTableModel* model_;
  RowTableView* table_;
  CompareCurves* curves_;
  CompareRequest proposed_;  // the pair that the view chose by itself
};

}  // namespace stepscope
