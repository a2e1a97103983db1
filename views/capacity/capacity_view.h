// SPDX-License-Identifier: GPL-3.0-or-later
// How large a dimension of the inputs may be in a memory of this or another machine: planned with a button, nothing runs.
// The frontier as a plot, every plan as a row.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>

#include "views/common/study_bar.h"
#include "views/common/table_panel.h"

namespace stepscope {

class FrontierPlot;

class CapacityView : public TablePanel {
  Q_OBJECT

 public:
  explicit CapacityView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* makeTop();
  void plan();
  QString fault() const;  // of what stands in the field of the memory; empty: none
  void follow();          // what stands around the points
  void showPlot();
  void takeModel();

  QComboBox* dimension_;
  QSpinBox* most_;
  QLineEdit* memory_;
  QCheckBox* recompute_;
  QLabel* summary_;
  StudyBar* bar_;
  FrontierPlot* plot_;
};

}  // namespace stepscope
