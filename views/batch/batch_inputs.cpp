// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/batch_inputs.h"

#include <algorithm>

namespace stepscope::batch {

std::vector<int> inputs(const SnapshotStore& store) {
  std::vector<int> found;
  if (!store.graph()) return found;
  for (const int id : store.graph()->graph().inputs()) {
    const auto* v = store.graph()->value(id);
    if (v && v->role() == snapshot::INPUT) found.push_back(id);
  }
  return found;
}

const snapshot::InputInfo* info(const SnapshotStore& store, int input) {
  const auto* v = store.graph() ? store.graph()->value(input) : nullptr;
  if (!v || !store.model()) return nullptr;
  for (const auto& i : store.model()->inputs()) {
    if (i.name() == v->name()) return &i;
  }
  return nullptr;
}

int maskOf(const SnapshotStore& store, int input) {
  for (const int id : inputs(store)) {
    const auto *v = store.graph()->value(input), *other = store.graph()->value(id);
    const auto* role = info(store, id);
    if (!v || id == input || !role || role->kind() != snapshot::InputInfo::MASK) continue;
    if (std::equal(v->dims().begin(), v->dims().end(), other->dims().begin(), other->dims().end())) return id;
  }
  return -1;
}

int labelsOf(const SnapshotStore& store, int input) {
  for (const int id : inputs(store)) {
    const auto *v = store.graph()->value(input), *other = store.graph()->value(id);
    if (v && id != input && other->dims_size() == 1 && v->dims_size() > 0 && other->dims(0) == v->dims(0) &&
        other->dtype().find("int") != std::string::npos)
      return id;
  }
  return -1;
}

}  // namespace stepscope::batch
