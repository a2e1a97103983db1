// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of each run of the project took, and how they ran. Written by the workbench, read by views. GUI thread
// only.
#pragma once

#include <map>

#include "views/common/project_facts.h"

namespace stepscope {

// Times of steps, and how those steps ran.
struct RunStepTimes : TimeFigures {
  QString speed;          // "full speed", "recorded", "walked", or several with their numbers; hostile text
  bool measured = false;  // the two below
  double processors = 0;  // processor time divided by wall time
  double waitShare = 0;   // of the processor time that was asked for, what was waited for, 0..1
  bool busy = false;      // so much that the times are longer for it
};

// Of the two runs of a comparison.
struct PairTimes {
  RunStepTimes a, b;
  QString notes;      // what else keeps their numbers apart, a line each: other numbers of threads, warm-up alone
  bool alike = true;  // false: one of both was measured in warm-up alone, so its times are not set against the other's

  QString unlike() const;   // "A full speed, B walked"; empty: both ran in the same way
  bool comparable() const;  // and on a machine at rest: a difference of times is one of the settings
};

class RunTimes : public QObject {
  Q_OBJECT

 public:
  explicit RunTimes(ProjectFacts* project) : QObject(project) {}
  // Those of a project, which the store makes with its facts.
  static RunTimes& of(ProjectFacts& project);
  static const RunTimes& of(const ProjectFacts& project);

  // Wall time of a step, without warm-up as long as other steps ran and without steps that somebody stopped in; n = 0 for a
  // run that has none. `otherProject`: the file that the run is in when it is not the open one.
  RunStepTimes step(std::int64_t run, const QString& otherProject = {}) const;
  PairTimes pair(const CompareRequest& request) const;
  void set(std::map<std::int64_t, RunStepTimes> times);
  void setOther(const QString& project, std::map<std::int64_t, RunStepTimes> times);
  // What the comparison of these two says of what keeps them apart; in place of that of the pair before.
  void setNotes(const CompareRequest& request, const QString& text, bool alike = true);

 signals:
  void changed();

 private:
  CompareRequest pair_;
  QString notes_;                                                  // of pair_
  bool alike_ = true;                                              // likewise
  std::map<QString, std::map<std::int64_t, RunStepTimes>> times_;  // by project; the open one under an empty name
};

}  // namespace stepscope
