// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/running.h"

namespace stepscope {

Running& Running::of(SnapshotStore& store) { return *store.findChild<Running*>(QString(), Qt::FindDirectChildrenOnly); }

const Running& Running::of(const SnapshotStore& store) {
  return *store.findChild<Running*>(QString(), Qt::FindDirectChildrenOnly);
}

void Running::set(bool on) {
  if (on == on_) return;
  on_ = on;
  emit changed();
}

}  // namespace stepscope
