// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/rank_times.h"

#include <utility>

namespace stepscope {

RankTimes& RankTimes::of(ProjectFacts& project) {
  return *project.findChild<RankTimes*>(QString(), Qt::FindDirectChildrenOnly);
}

const RankTimes& RankTimes::of(const ProjectFacts& project) {
  return *project.findChild<RankTimes*>(QString(), Qt::FindDirectChildrenOnly);
}

StepRanksPtr RankTimes::ofStep(std::int64_t step) const {
  const auto found = steps_.find(step);
  if (found != steps_.end()) return found->second;
  return chosen_ && chosen_->step() == step ? chosen_ : nullptr;
}

void RankTimes::set(Table table, std::map<std::int64_t, StepRanksPtr> steps) {
  table_ = std::move(table);
  steps_ = std::move(steps);
  chosen_ = nullptr;
  emit changed();
}

}  // namespace stepscope
