// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/timeline/timeline_axis.h"

#include <algorithm>
#include <utility>

namespace stepscope {

TimelineAxis::TimelineAxis(std::vector<TimelineCut> cuts) : cuts_(std::move(cuts)), before_{0} {
  before_.reserve(cuts_.size() + 1);
  for (const TimelineCut& cut : cuts_) before_.push_back(before_.back() + cut.end - cut.begin);
}

double TimelineAxis::toPlace(double clock) const {
  const auto next = std::upper_bound(cuts_.begin(), cuts_.end(), clock,
                                     [](double at, const TimelineCut& cut) { return at < static_cast<double>(cut.begin); });
  const auto begun = static_cast<std::size_t>(next - cuts_.begin());
  if (begun > 0 && clock < static_cast<double>(cuts_[begun - 1].end))
    return static_cast<double>(cuts_[begun - 1].begin - before_[begun - 1]);
  return clock - static_cast<double>(before_[begun]);
}

double TimelineAxis::toClock(double place, bool after) const {
  std::size_t low = 0, high = cuts_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const auto at = static_cast<double>(cuts_[middle].begin - before_[middle]);
    if (at < place || (after && at == place))
      low = middle + 1;
    else
      high = middle;
  }
  return place + static_cast<double>(before_[low]);
}

std::int64_t TimelineAxis::cutWithin(std::int64_t begin, std::int64_t end) const {
  const auto cutBefore = [this](std::int64_t clock) {
    return clock - static_cast<std::int64_t>(toPlace(static_cast<double>(clock)));
  };
  return begin < end ? cutBefore(end) - cutBefore(begin) : 0;
}

}  // namespace stepscope
