// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/counted_steps.h"

#include <algorithm>

namespace stepscope {

QString CountedSteps::leftOut() const {
  QString text;
  if (warmUp > 0)
    text = warmUp == 1 ? QStringLiteral(", 1 warm-up step left out")
                       : QStringLiteral(", %1 warm-up steps left out").arg(warmUp);
  return others > 0 ? text + QStringLiteral(", %1 of another plan left out").arg(others) : text;
}

CountedSteps countedSteps(const std::vector<StepPtr>& steps, std::size_t most, std::int64_t begin, std::int64_t end,
                          const StepPlans* plans) {
  CountedSteps counted;
  const bool ranged = begin < end;
  for (auto step = steps.rbegin();
       step != steps.rend() && (ranged || counted.steps.size() + static_cast<std::size_t>(counted.others) < most); ++step) {
    const snapshot::StepRecord& s = **step;
    if (s.spans_size() == 0 || (ranged && (s.begin_ns() + s.ns() <= begin || s.begin_ns() >= end))) continue;
    if (plans && !plans->underPresent(s)) {
      ++counted.others;
      continue;
    }
    counted.steps.push_back(*step);
  }
  std::reverse(counted.steps.begin(), counted.steps.end());
  const auto warm = [](const StepPtr& s) { return s->warm_up(); };
  if (std::all_of(counted.steps.begin(), counted.steps.end(), warm)) return counted;
  counted.warmUp = static_cast<int>(std::erase_if(counted.steps, warm));
  return counted;
}

const snapshot::StepRecord* newestOfPlan(const SnapshotStore& store) {
  if (store.steps().empty()) return nullptr;
  const snapshot::StepRecord* newest = store.steps().back().get();
  return StepPlans::of(store).underPresent(*newest) ? newest : nullptr;
}

}  // namespace stepscope
