// SPDX-License-Identifier: GPL-3.0-or-later
// The data of the present step as people think of it: every input with its shape, meaning, range and density; its elements are
// one click away in the tensor view.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

class BatchView : public TablePanel {
  Q_OBJECT

 public:
  explicit BatchView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;

 protected:
  void refill() override;
  void showEvent(QShowEvent* event) override;

 private:
  void fetch();
  bool fetched_ = false;
};

}  // namespace stepscope
