// SPDX-License-Identifier: GPL-3.0-or-later
// What is known about the selected node: operands, attributes, lineage, cost, memory, source.
#pragma once

#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class NodeView : public View {
  Q_OBJECT

 public:
  explicit NodeView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 private:
  void refresh();

  Details* page_;
};

}  // namespace stepscope
