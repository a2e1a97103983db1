// SPDX-License-Identifier: GPL-3.0-or-later
// The one step that a person wants to see in full, in place of the newest ones. Its record comes from the project when the
// store has it no more; until then, and where it was not recorded, nothing of another step stands for it. Lives with the
// store. GUI thread only.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

class ChosenStep : public QObject {
  Q_OBJECT

 public:
  enum class State {
    kNewest,   // none is chosen: views show the newest steps
    kReading,  // it is on its way
    kShown,    // record() is it
    kMissing,  // text() says why it cannot be shown
  };

  explicit ChosenStep(SnapshotStore* store);
  static ChosenStep& of(SnapshotStore& store);
  static const ChosenStep& of(const SnapshotStore& store);

  State state() const { return state_; }
  std::int64_t step() const { return step_; }        // -1: none is chosen
  const StepPtr& record() const { return record_; }  // nullptr unless it is shown
  // What views of many steps show: the newest, or the chosen one alone, or none while there is none.
  std::vector<StepPtr> steps() const;
  // What stands in a view while the chosen step cannot be shown, or has no times of its instructions; empty otherwise.
  QString text() const;
  // The same for a view of the plan that is shown: the step may have run under another one.
  QString textOfPlan() const;
  // "step 12", for the header of a view; empty when none is chosen.
  QString title() const;

  // By the workbench only. -1 goes back to the newest. True when the record has to be read.
  bool choose(std::int64_t step);
  // What the project has of it: nullptr with a problem, or without one where it has no such step. An answer about another
  // step than the one that is waited for is dropped.
  void set(std::int64_t step, StepPtr record, const QString& problem);

 signals:
  void changed();

 private:
  void show(StepPtr record);
  void followSteps();
  void become(State state);

  SnapshotStore& store_;
  State state_ = State::kNewest;
  std::int64_t step_ = -1;
  StepPtr record_;
  QString problem_;  // hostile text
};

}  // namespace stepscope
