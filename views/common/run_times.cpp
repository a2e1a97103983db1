// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/run_times.h"

namespace stepscope {

RunTimes& RunTimes::of(ProjectFacts& project) {
  auto* times = project.findChild<RunTimes*>(QString(), Qt::FindDirectChildrenOnly);
  return times ? *times : *new RunTimes(&project);
}

TimeFigures RunTimes::step(std::int64_t run) const {
  const auto it = times_.find(run);
  return it == times_.end() ? TimeFigures() : it->second;
}

void RunTimes::set(std::map<std::int64_t, TimeFigures> times) {
  times_ = std::move(times);
  emit changed();
}

}  // namespace stepscope
