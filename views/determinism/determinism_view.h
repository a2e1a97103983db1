// SPDX-License-Identifier: GPL-3.0-or-later
// The verdict on every node with its reason, and the result of running a step twice and comparing bits.
#pragma once

#include <QLabel>

#include "views/common/table_panel.h"

namespace stepscope {

class DeterminismView : public TablePanel {
  Q_OBJECT

 public:
  explicit DeterminismView(const ViewContext& context, QWidget* parent = nullptr);

 protected:
  void refill() override;

 private:
  QString summary() const;
  QString nameOf(std::size_t place) const;

  QLabel* result_;
};

}  // namespace stepscope
