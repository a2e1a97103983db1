// SPDX-License-Identifier: GPL-3.0-or-later
// What two runs were told differently, and how far their numbers may part.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

class CompareOptionsView : public TablePanel {
  Q_OBJECT

 public:
  explicit CompareOptionsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;

 private:
  void apply();  // the tolerance as typed
  void showTolerance();

  QLineEdit *rtol_, *atol_;
  QLabel *verdict_, *same_;
};

}  // namespace stepscope
