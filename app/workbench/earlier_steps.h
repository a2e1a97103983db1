// SPDX-License-Identifier: GPL-3.0-or-later
// After steps were taken back (a rewind, another set-up), the steps that stand before them: the window kept the records of
// newer ones, so those of these come from the project that is recorded. The newest 64 are read, as many as have the times of
// their instructions in memory; until they have come views say so. A step that the file has executed several times is the
// last one, which is the one that stands. GUI thread; nothing waits.
#pragma once

#include <QObject>

#include "app/workbench/cancellable_reads.h"
#include "app/workbench/project_threads.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class EarlierSteps : public QObject {
  Q_OBJECT

 public:
  EarlierSteps(SnapshotStore& store, ProjectThreads& threads, CancellableReads& reads);

 private:
  void read();
  void forget();

  SnapshotStore& store_;
  ProjectThreads& threads_;
  CancellableReads& reads_;
  CancellableReads::Stop asked_;  // last; answers to older ones drop out
};

}  // namespace stepscope
