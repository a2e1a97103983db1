// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/step_plans.h"

#include <algorithm>
#include <utility>

namespace stepscope {
namespace {

constexpr std::size_t kKept = 64;  // as many as have spans

const snapshot::StepRecord* recordOf(const std::vector<StepPtr>& steps, std::int64_t number) {
  const auto at =
      std::lower_bound(steps.begin(), steps.end(), number, [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
  return at != steps.end() && (*at)->step() == number ? at->get() : nullptr;
}

}  // namespace

StepPlans& StepPlans::of(SnapshotStore& store) {
  return *store.findChild<StepPlans*>(QString(), Qt::FindDirectChildrenOnly);
}

const StepPlans& StepPlans::of(const SnapshotStore& store) {
  return *store.findChild<StepPlans*>(QString(), Qt::FindDirectChildrenOnly);
}

PlanOfStep StepPlans::planOf(std::int64_t step) const {
  if (const auto at = steps_.find(step); at != steps_.end()) return at->second.under;
  return step == chosen_.first ? chosen_.second : PlanOfStep();
}

bool StepPlans::underPresent(const snapshot::StepRecord& step) const {
  if (!store_.plan()) return false;
  if (const auto at = steps_.find(step.step()); at != steps_.end() && at->second.waits) return false;
  const PlanPtr plan = planOf(step.step()).plan;
  return plan ? plan == store_.plan() : spansFit(*store_.plan(), step);
}

void StepPlans::ran(const snapshot::StepRecord& step) {
  Ran& entry = steps_[step.step()] = {.under = {}, .waits = reading_};
  if (!reading_ && store_.plan() && spansFit(*store_.plan(), step)) entry.under = {store_.plan(), store_.graph()};
  if (steps_.size() > kKept) steps_.erase(steps_.begin());
}

void StepPlans::planIsRead() {
  reading_ = false;
  const PlanOfStep now{store_.plan(), store_.graph()};
  if (!now.plan) return;
  std::map<PlanPtr, bool> same;
  const auto renew = [&](PlanOfStep& under) {
    if (!under.plan) return;
    const auto [at, isNew] = same.try_emplace(under.plan, false);
    if (isNew) at->second = samePlan(*under.plan, *now.plan);
    if (at->second) under = now;
  };
  renew(chosen_.second);
  for (auto& [number, step] : steps_) {
    renew(step.under);
    if (!std::exchange(step.waits, false)) continue;
    const auto* record = recordOf(store_.steps(), number);
    if (record && spansFit(*now.plan, *record)) step.under = now;
  }
}

void StepPlans::takeBackFrom(std::int64_t step) { steps_.erase(steps_.lower_bound(step), steps_.end()); }

void StepPlans::clear() {
  steps_.clear();
  chosen_ = {-1, {}};
  reading_ = false;
}

void StepPlans::set(std::map<std::int64_t, PlanOfStep> plans) {
  for (auto& [number, plan] : plans) steps_[number] = {.under = known(std::move(plan))};
}

void StepPlans::restore(std::map<std::int64_t, PlanOfStep> plans) {
  for (auto& [number, plan] : plans)
    if (!steps_.contains(number)) steps_[number] = {.under = known(std::move(plan))};
}

void StepPlans::setChosen(std::int64_t step, PlanOfStep plan) { chosen_ = {step, known(std::move(plan))}; }

PlanOfStep StepPlans::known(PlanOfStep plan) const {
  if (!plan.plan) return plan;
  if (store_.plan() && samePlan(*plan.plan, *store_.plan())) return {store_.plan(), store_.graph()};
  const PlanSnapshot* compared = nullptr;
  for (const auto& [number, step] : steps_)
    if (step.under.plan && std::exchange(compared, step.under.plan.get()) != step.under.plan.get() &&
        samePlan(*plan.plan, *step.under.plan))
      return step.under;
  return plan;
}

bool samePlan(const PlanSnapshot& a, const PlanSnapshot& b) {
  if (&a == &b) return true;
  // Times of other shapes say nothing, though the instructions are the same.
  if (a.size() != b.size() || a.plan().signature() != b.plan().signature()) return false;
  return std::equal(a.plan().instructions().begin(), a.plan().instructions().end(), b.plan().instructions().begin(),
                    [](const snapshot::Instruction& x, const snapshot::Instruction& y) {
                      return x.node() == y.node() && x.phase() == y.phase() && x.op() == y.op() && x.label() == y.label() &&
                             x.implementation() == y.implementation() && x.stream() == y.stream() &&
                             x.bytes_read() == y.bytes_read() && x.bytes_written() == y.bytes_written();
                    });
}

bool spansFit(const PlanSnapshot& plan, const snapshot::StepRecord& step) {
  return std::all_of(step.spans().begin(), step.spans().end(), [&plan](const snapshot::InstructionSpan& span) {
    const auto* in = plan.instruction(span.instruction());
    return in != nullptr && in->node() == span.node();
  });
}

}  // namespace stepscope
