// SPDX-License-Identifier: GPL-3.0-or-later
// The selected value: what it is, its statistics and histogram, its elements as a table or a heat map, and how it differs
// from one that was kept. When its memory was given to another value, it says to whom and when.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QStackedWidget>
#include <QTabBar>
#include <QTableView>
#include <QToolButton>

#include "views/common/details.h"
#include "views/common/view.h"
#include "views/tensors/heat_map.h"
#include "views/tensors/histogram.h"
#include "views/tensors/tensor_table.h"

namespace stepscope {

class TensorsView : public View {
  Q_OBJECT

 public:
  explicit TensorsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  void find() override;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void followSelection();
  void fillOperands();
  void showValue(int value);
  void fetch();
  void show();
  void showDetails();
  void showStatistics();
  void showElements();
  void showComparison();
  void applySlice();
  void editCell(const QModelIndex& index);
  void openMenu();
  std::vector<std::int64_t> dims() const;  // of the shown value; empty when they are not known

  QComboBox* operands_;
  Details* details_;
  Histogram* histogram_;
  Details* statistics_;
  QTabBar* tabs_;
  QLabel* scale_;
  QLineEdit* slice_;
  QLabel* problem_;
  QStackedWidget* pages_;
  QTableView* elements_;
  TensorTable* table_;
  HeatMap* heat_;
  Details* comparison_;
  QToolButton* more_;
  int value_ = -1;
  Slice wanted_;
  TensorPtr kept_;
  bool filling_ = false;
  bool stale_ = true;
};

}  // namespace stepscope
