// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/stop_selection.h"

#include "views/common/conditions.h"

namespace stepscope {

Selection aboutToRun(const PlanSnapshot& plan, int instruction) {
  Selection s = Selection::ofInstruction(instruction);
  int latest = -2;
  for (const auto& input : plan.instruction(instruction)->inputs()) {
    const int maker = plan.producerOfValue(input.value());
    if (input.value() < 0 || maker <= latest || maker >= instruction) continue;
    latest = maker;
    s.value = input.value();
  }
  return s;
}

Selection whatBroke(const SnapshotStore& store, const snapshot::Breakpoint& breakpoint, int made) {
  Selection s = Selection::ofInstruction(made);
  const auto* instruction = store.plan() ? store.plan()->instruction(made) : nullptr;
  if (!instruction || !store.graph()) return s;
  if (breakpoint.condition_case() == snapshot::Breakpoint::kPredicate) {
    s.value = conditions::valueMade(breakpoint.predicate(), *instruction, *store.graph());
    return s;
  }
  for (const auto& alert : store.alerts()) {
    if (alert.step() != store.position().step() || alert.instruction() != made) continue;
    for (const auto& output : instruction->outputs())
      if (output.value() == alert.value() && alert.value() >= 0) s.value = alert.value();
  }
  return s;
}

}  // namespace stepscope
