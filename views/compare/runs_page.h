// SPDX-License-Identifier: GPL-3.0-or-later
// What both runs were and how they went, beside their losses over each other.
#pragma once

#include <QSplitter>

#include "views/common/row_table.h"
#include "views/compare/compare_curves.h"

namespace stepscope {

class CompareRunsPage : public View {
  Q_OBJECT

 public:
  explicit CompareRunsPage(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  void fitAll() override { curves_->fit(); }
  void setLogarithmic(bool on) { curves_->setLogarithmic(on); }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void showResult();
  void arrange();

  RowTableModel* model_;
  RowTableView* table_;
  CompareCurves* curves_;
  QSplitter* halves_;
};

}  // namespace stepscope
