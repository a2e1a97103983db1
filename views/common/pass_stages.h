// SPDX-License-Identifier: GPL-3.0-or-later
// Graphs after single passes of the build that the store shows, beside those of its phases. They can be asked for while the
// model is open; a project file keeps those of phases. Lives with the store.
//
// A *stop* is a place of the build with a graph: "PHASE", or "PHASE/PASS" for a pass that changed something, which stands
// before the stop of its phase.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

class PassStages : public QObject {
  Q_OBJECT

 public:
  explicit PassStages(SnapshotStore* store);
  static PassStages& of(SnapshotStore& store);
  static const PassStages& of(const SnapshotStore& store);
  static bool isPass(const QString& stop) { return stop.contains('/'); }

  // All stops in the order of the build. By the workbench only, right before the phases among them are set as the stages of
  // the store.
  void set(QStringList stops) { stops_ = std::move(stops); }
  const QStringList& stops() const;  // where no pass is known, the stages of the store

  // The stops before and after a span of the build, an index of the store's phases: equal for one that changed nothing,
  // empty where there is no stop.
  struct Range {
    QString before, after;
    bool operator==(const Range&) const = default;
  };
  Range around(int span) const;

 private:
  const SnapshotStore& store_;
  QStringList stops_;
};

}  // namespace stepscope
