// SPDX-License-Identifier: GPL-3.0-or-later
// What the processes of the shown run took, next to each other, and for whom the others waited. Written by the workbench,
// read by views. GUI thread only.
#pragma once

#include <QObject>
#include <QString>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/snapshot/ranks.pb.h"
#include "views/common/project_facts.h"

namespace stepscope {

// One process. Means over the steps of the run but its first one; bytes of memory are the largest.
struct RankTotals {
  int rank = 0;
  std::int64_t steps = 0, last = 0;  // in how many steps the others waited for it most
  double ns = 0, exposedNs = 0, waitNs = 0, moveNs = 0, sentBytes = 0, plannedSentBytes = 0;
  std::int64_t peakBytes = 0, plannedBytes = 0, stateBytes = 0;
};

// A collective. Means over ranks and steps.
struct CollectiveTotals {
  QString node;  // hostile text
  double meanWaitNs = 0, worstWaitNs = 0, moveNs = 0, exposedNs = 0, sentBytes = 0;
  int last = -1;  // the rank that the others waited for in most steps
};

using StepRanksPtr = std::shared_ptr<const snapshot::StepRanks>;

class RankTimes : public QObject {
  Q_OBJECT

 public:
  struct Table {
    std::vector<RankTotals> ranks;              // empty: a run of one process
    std::vector<CollectiveTotals> collectives;  // as they come in a step
  };

  explicit RankTimes(ProjectFacts* project) : QObject(project) {}
  // Those of a project, which the store makes with its facts.
  static RankTimes& of(ProjectFacts& project);
  static const RankTimes& of(const ProjectFacts& project);

  const Table& table() const { return table_; }
  int count() const { return static_cast<int>(table_.ranks.size()); }
  // What the ranks did in a step; nullptr where that is not known: it is kept of the newest steps and of the chosen one.
  StepRanksPtr ofStep(std::int64_t step) const;
  bool hasSteps() const { return !steps_.empty(); }

  void set(Table table, std::map<std::int64_t, StepRanksPtr> steps);
  void setChosen(StepRanksPtr step) { chosen_ = std::move(step); }

 signals:
  void changed();

 private:
  Table table_;
  std::map<std::int64_t, StepRanksPtr> steps_;  // by number
  StepRanksPtr chosen_;
};

}  // namespace stepscope
