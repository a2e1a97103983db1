// SPDX-License-Identifier: GPL-3.0-or-later
// The lines of the user's program that the nodes came from, as the exporter recorded them, with time and bytes per line.
// Files are named in the model and never opened by themselves.
#pragma once

#include <QComboBox>

#include "views/common/row_table.h"

namespace stepscope {

class SourceView : public TablePanel {
  Q_OBJECT

 public:
  explicit SourceView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;

 protected:
  void refill() override;

 private:
  QComboBox* file_;
  bool filling_ = false;
  mutable GraphPtr looked_;
  mutable bool hasLines_ = false;
};

}  // namespace stepscope
