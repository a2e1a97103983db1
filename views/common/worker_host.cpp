// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/worker_host.h"

namespace stepscope {

WorkerHost& WorkerHost::of(SnapshotStore& store) {
  return *store.findChild<WorkerHost*>(QString(), Qt::FindDirectChildrenOnly);
}

const WorkerHost& WorkerHost::of(const SnapshotStore& store) {
  return *store.findChild<WorkerHost*>(QString(), Qt::FindDirectChildrenOnly);
}

void WorkerHost::set(const QString& name, bool scripted) {
  if (name == name_ && scripted == scripted_) return;
  name_ = name;
  scripted_ = scripted;
  emit changed();
}

}  // namespace stepscope
