// SPDX-License-Identifier: GPL-3.0-or-later
// What the worker told of the build that runs: the phase and pass that it is in, and the graphs that it kept before them.
// It is looked at when the worker dies of it.
#pragma once

#include <QString>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

class BuildTrace {
 public:
  void phase(const snapshot::PhaseSpan& span);  // ns -1: it begins; else it ended
  void graph(const GraphPtr& graph);            // takes the place of an older one of its phase, and of those after it
  void clear();                                 // the build is done, or its worker is another one

  bool running() const { return !open_.empty(); }
  // "stage 8 of 14: making the gradient", with the pass that runs in it; empty where none runs.
  QString text() const;
  int place() const;          // of the phase in kBuildPhases, 1 for the first; 0: none runs, or it is not known
  QString phaseName() const;  // empty where none runs
  QString passName() const;   // the innermost; empty between passes
  bool passCanBeOff() const;  // it has an option of its own, pass.NAME
  // In their order; of a very large build the newest ones.
  const std::vector<GraphPtr>& graphs() const { return graphs_; }

 private:
  struct Open {
    QString name;
    bool canBeOff = false;
  };
  std::vector<Open> open_;
  std::vector<GraphPtr> graphs_;
};

// Of a worker that died while it built.
struct BuildDeath {
  QString reason, phase, pass;
  bool passCanBeOff = false;
  std::vector<GraphPtr> graphs;
  bool besidePlan = false;  // one of before is shown
};

}  // namespace stepscope
