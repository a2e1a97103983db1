// SPDX-License-Identifier: GPL-3.0-or-later
// The machine that the worker runs on. Lives with the store; a view that does not care does not know it.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

class WorkerHost : public QObject {
  Q_OBJECT

 public:
  explicit WorkerHost(SnapshotStore* store) : QObject(store) {}
  static WorkerHost& of(SnapshotStore& store);
  static const WorkerHost& of(const SnapshotStore& store);

  const QString& name() const { return name_; }          // as ssh knows it; empty: this machine
  bool scripted() const { return scripted_; }            // in the place of a worker a script answers there, which drives
  void set(const QString& name, bool scripted = false);  // by the workbench only

 signals:
  void changed();

 private:
  QString name_;
  bool scripted_ = false;
};

}  // namespace stepscope
