// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/median_times.h"

#include <algorithm>

#include "views/common/step_plans.h"

namespace stepscope {
namespace {

constexpr std::size_t kSteps = 15;

// Back to the first step of the plan, which is its warm-up.
std::vector<const snapshot::StepRecord*> stepsOfPlan(const SnapshotStore& store) {
  std::vector<const snapshot::StepRecord*> steps;
  const auto& all = store.steps();
  for (auto step = all.rbegin(); step != all.rend() && steps.size() < kSteps; ++step) {
    if ((*step)->warm_up()) {
      if (steps.empty() && (*step)->spans_size() > 0) steps.push_back(step->get());
      break;
    }
    if ((*step)->spans_size() > 0) steps.push_back(step->get());
  }
  return steps;
}

}  // namespace

std::vector<std::int64_t> medianTimes(const SnapshotStore& store) {
  const PlanPtr& plan = store.plan();
  if (!plan) return {};
  std::vector<std::vector<std::int64_t>> times(static_cast<std::size_t>(plan->size()));
  for (const snapshot::StepRecord* step : stepsOfPlan(store)) {
    if (!StepPlans::of(store).underPresent(*step)) continue;
    for (const auto& span : step->spans()) {
      const auto* in = plan->instruction(span.instruction());
      if (!in || in->node() != span.node()) continue;
      times[static_cast<std::size_t>(span.instruction())].push_back(
          std::max<std::int64_t>(0, span.end_ns() - span.begin_ns()));
    }
  }
  std::vector<std::int64_t> medians(times.size(), -1);
  for (std::size_t i = 0; i < times.size(); ++i) {
    auto& t = times[i];
    if (t.empty()) {
      medians[i] = store.timing(static_cast<int>(i)).ns;
      continue;
    }
    std::sort(t.begin(), t.end());
    medians[i] = (t[(t.size() - 1) / 2] + t[t.size() / 2]) / 2;
  }
  return medians;
}

}  // namespace stepscope
