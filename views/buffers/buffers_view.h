// SPDX-License-Identifier: GPL-3.0-or-later
// All buffers of the plan: class, place, lifetime and the reason of their place.
#pragma once

#include "views/common/table_panel.h"

namespace stepscope {

class BuffersView : public TablePanel {
  Q_OBJECT

 public:
  explicit BuffersView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  QString headerText() const override;

 protected:
  void refill() override;

 private:
  static constexpr int kMostRows = 5000;  // more do not fit a table; the memory map and Ctrl+P reach the rest
  static TableRow rowOf(const snapshot::Buffer& buffer);
};

}  // namespace stepscope
