// SPDX-License-Identifier: GPL-3.0-or-later
// The time axis of the timeline: the worker's clock without the stretches that are cut out of it, because somebody had
// stopped and nothing ran. Places on the axis are nanoseconds too: two places are as far apart as what ran between them
// took. A value type.
#pragma once

#include <cstdint>
#include <vector>

namespace stepscope {

struct TimelineCut {
  std::int64_t begin = 0, end = 0;  // on the clock
  int step = -1;                    // index of the step within which it lies; -1: between steps
  bool stopped = false;             // somebody stopped in that step; otherwise it is just longer than all that ran
};

class TimelineAxis {
 public:
  // Ascending; they may touch, not overlap.
  explicit TimelineAxis(std::vector<TimelineCut> cuts = {});

  const std::vector<TimelineCut>& cuts() const { return cuts_; }
  // The place of a moment; every moment of a cut has the same one.
  double toPlace(double clock) const;
  // The moment at a place. A cut has one place, and two moments stand there: its begin, or with `after` its end.
  double toClock(double place, bool after) const;
  // How much of [begin, end] is cut out.
  std::int64_t cutWithin(std::int64_t begin, std::int64_t end) const;
  std::int64_t cutOut() const { return before_.back(); }  // all of it

 private:
  std::vector<TimelineCut> cuts_;
  std::vector<std::int64_t> before_;  // before_[i]: what the first i cuts take out
};

}  // namespace stepscope
