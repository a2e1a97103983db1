// SPDX-License-Identifier: GPL-3.0-or-later
// What a low precision costs and risks: a study of the present step, asked for with a button; classes of tensors with the
// exponents of their elements, nodes with the override that would help, gradients. An override is applied at once, in a
// paused step too, with proof and undo as any option.
#pragma once

#include <QButtonGroup>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>

#include "views/common/view.h"

namespace stepscope {

class ExponentDelegate;
class RowTableModel;
class RowTableView;

class PrecisionView : public View {
  Q_OBJECT

 public:
  explicit PrecisionView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QString emptyText() const override;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  struct Page {
    RowTableModel* model = nullptr;
    RowTableView* table = nullptr;
  };
  Page makePage(const QString& id, const QString& name);
  QWidget* makeControls();
  void study();
  void apply();
  void takeReport();
  void tellProof();
  void follow();           // what stands around the report: options, worker, chosen node
  int chosenNode() const;  // of the report; -1: none
  QString option(const char* name) const;

  QComboBox* precision_;
  QPushButton *study_, *apply_;
  QLabel *summary_, *stale_, *problem_, *proof_;
  QButtonGroup* pages_;
  QStackedWidget* stack_;
  ExponentDelegate* exponents_;
  Page classes_, nodes_, gradients_;
  bool chosen_ = false;  // the precision was chosen by a person; else it follows the option
};

}  // namespace stepscope
