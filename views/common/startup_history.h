// SPDX-License-Identifier: GPL-3.0-or-later
// The times of a phase in the start-ups before the one that is shown.
#pragma once

#include <QStringList>
#include <map>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "views/common/run_comparison.h"

namespace stepscope {

// Names of the spans with those around them, as in StartupHistory: "pre-grad passes/fold_constants"; the second of one name
// ends in " #2". One per span.
QStringList phasePaths(const std::vector<snapshot::PhaseSpan>& phases);

// Nanoseconds; n = 0: no earlier start-up ran the phase to its end.
struct EarlierTimes {
  int n = 0;
  std::int64_t previous = -1, median = 0, min = 0, max = 0;

  // Whether `ns` is news: -1 faster, 1 slower. 0 with fewer than three earlier start-ups, within what they took, and where
  // the median is less than 5 % or 0.1 ms away, as times of a build scatter by themselves.
  int news(std::int64_t ns) const;
};

// The path of the whole build is empty; of it only start-ups count that read the file where the shown one did.
class EarlierStartups {
 public:
  explicit EarlierStartups(const StartupHistory& history);

  EarlierTimes of(const QString& path) const;
  // True when there is a start-up before the one that is shown.
  bool any() const { return shown_ > 0; }
  // Of every start-up that ran the phase, the shown one last.
  std::vector<PhaseHistory::Point> points(const QString& path) const;

 private:
  int shown_ = -1;  // index of the start-up that is shown
  std::map<QString, std::vector<PhaseHistory::Point>> points_;
};

}  // namespace stepscope
