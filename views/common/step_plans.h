// SPDX-License-Identifier: GPL-3.0-or-later
// The plan and the graph that each of the newest steps ran under. After an option or the set-up changed, instruction 12 of a
// step before is another one than instruction 12 of the plan that is shown. Lives with the store. GUI thread only.
#pragma once

#include <map>

#include "views/common/snapshot_store.h"

namespace stepscope {

struct PlanOfStep {
  PlanPtr plan;  // null: not known
  GraphPtr graph;
};

class StepPlans : public QObject {
  Q_OBJECT

 public:
  explicit StepPlans(SnapshotStore* store) : QObject(store), store_(*store) {}
  static StepPlans& of(SnapshotStore& store);
  static const StepPlans& of(const SnapshotStore& store);

  // Of one of the 64 newest steps, of those of a project that have times, or of the chosen one; else null.
  PlanOfStep planOf(std::int64_t step) const;
  // Whether its instructions are those of the plan that is shown. Where its plan is not known its spans decide.
  bool underPresent(const snapshot::StepRecord& step) const;

  // By the store: a step ended; its plan is another message (or the same plan, read again); steps are gone.
  void ran(const snapshot::StepRecord& step);
  void planIsRead();
  void takeBackFrom(std::int64_t step);
  void clear();
  // By the workbench: the worker runs another plan from here on. Steps that come belong to the one that is read next.
  void another() { reading_ = true; }
  // Of a project: all that it has; the one of a step that was read by itself.
  void set(std::map<std::int64_t, PlanOfStep> plans);
  void restore(std::map<std::int64_t, PlanOfStep> plans);  // of some: those that are known stay
  void setChosen(std::int64_t step, PlanOfStep plan);

 private:
  struct Ran {
    PlanOfStep under;
    bool waits = false;  // for the plan to be read
  };
  PlanOfStep known(PlanOfStep plan) const;  // the one that is held already, where it is the same

  SnapshotStore& store_;
  std::map<std::int64_t, Ran> steps_;  // by number
  std::pair<std::int64_t, PlanOfStep> chosen_{-1, {}};
  bool reading_ = false;
};

// Whether both do the same with instructions of the same numbers.
bool samePlan(const PlanSnapshot& a, const PlanSnapshot& b);

// Whether the spans of a step are of instructions that this plan has: true also for some steps of another one.
bool spansFit(const PlanSnapshot& plan, const snapshot::StepRecord& step);

}  // namespace stepscope
