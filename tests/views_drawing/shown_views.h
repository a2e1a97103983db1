// SPDX-License-Identifier: GPL-3.0-or-later
// A made-up training step in a store, and its graph in a view: what the tests of the drawn views begin with.
#pragma once

#include <memory>

#include "views/common/view.h"
#include "views/graph/graph_view.h"

namespace stepscope {

struct Window {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context() { return {store, selection, wishes}; }

  void fill(int blocks = 4, int steps = 3);
};

// Waits for the layout; false when it does not come.
bool settle(GraphView& view);

// A step of so many blocks, and its graph in a view of that size.
class ShownGraph : public Window {
 public:
  ShownGraph(int blocks, QSize size);
  GraphView& view() { return *view_; }

 private:
  std::unique_ptr<GraphView> view_;
};

}  // namespace stepscope
