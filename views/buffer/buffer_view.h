// SPDX-License-Identifier: GPL-3.0-or-later
// One buffer: its lifetime, who uses it, why it lies where it lies, and the peak it is part of.
#pragma once

#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class BufferView : public View {
  Q_OBJECT

 public:
  explicit BufferView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 private:
  void refresh();

  Details* page_;
};

}  // namespace stepscope
