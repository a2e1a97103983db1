// SPDX-License-Identifier: GPL-3.0-or-later
// What a view needs without a worker, and small made-up data to show.
#pragma once

#include <QWidget>
#include <vector>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"
#include "views/common/view.h"
#include "views/common/wishes.h"

namespace stepscope {

struct Bench {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context() { return {store, selection, wishes}; }
};

// ids [2, 3] and mask [2, 3] go through two nodes of model.py, line 3, and one of line 5; node 3 is the gradient of node 0.
GraphPtr graph();
// Its inputs with their roles.
ModelPtr model();
// Step `number`, in which `valid` of the 6 tokens of "ids" are no padding.
StepPtr stepOf(std::int64_t number, std::int64_t valid);

template <typename T>
TensorPtr tensorOf(int value, const char* dtype, std::vector<std::int64_t> dims, const std::vector<T>& data) {
  auto t = std::make_shared<snapshot::TensorData>();
  t->set_value(value);
  t->set_dtype(dtype);
  for (const auto d : dims) {
    t->add_dims(d);
    t->add_begin(0);
    t->add_extent(d);
  }
  t->set_data(data.data(), data.size() * sizeof(T));
  t->set_current(true);
  t->set_step(4);
  return t;
}

template <typename T>
const T* child(const QWidget& of, const char* name) {
  return of.findChild<const T*>(QLatin1String(name));
}

}  // namespace stepscope
