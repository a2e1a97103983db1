// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/times_page.h"

#include "views/common/comparison_cells.h"

namespace stepscope {
namespace {

QString idOf(Times which) {
  switch (which) {
    case Times::kOperators: return QStringLiteral("compare_operators");
    case Times::kStepPhases: return QStringLiteral("compare_phases");
    case Times::kBuild: return QStringLiteral("compare_build");
    case Times::kMemory: return QStringLiteral("compare_memory");
  }
  return {};
}

QString titleOf(Times which) {
  switch (which) {
    case Times::kOperators: return QStringLiteral("Operators");
    case Times::kStepPhases: return QStringLiteral("Phases");
    case Times::kBuild: return QStringLiteral("Build");
    case Times::kMemory: return QStringLiteral("Memory");
  }
  return {};
}

}  // namespace

CompareTimesPage::CompareTimesPage(const ViewContext& context, Times which, QWidget* parent)
    : TablePanel(context, idOf(which), titleOf(which), timeColumns(which), parent), which_(which) {
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareTimesPage::refillLater);
  connect(&RunTimes::of(store().project()), &RunTimes::changed, this, &CompareTimesPage::refillLater);
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareTimesPage::emptyChanged);
  // Rows of operators select the first instruction of the open plan.
  if (which == Times::kOperators) connect(&store(), &SnapshotStore::planChanged, this, &CompareTimesPage::refillLater);
}

QString CompareTimesPage::emptyText() const {
  const auto& result = store().project().runComparison();
  if (!result) return comparison::noneText(store().project());
  const QString timed = QStringLiteral(
      "Neither run recorded the times of its instructions.\nSteps that are walked or recorded have them; steps at full "
      "speed record only how long they took.");
  switch (which_) {
    case Times::kOperators: return result->ops.empty() ? timed : QString();
    case Times::kStepPhases: return result->stepPhases.empty() ? timed : QString();
    case Times::kBuild:
      return result->buildPhases.empty() ? QStringLiteral("Neither run recorded how long its build took.") : QString();
    case Times::kMemory: return result->memory.empty() ? QStringLiteral("Neither run recorded its memory.") : QString();
  }
  return {};
}

PairTimes CompareTimesPage::times() const {
  const auto& result = store().project().runComparison();
  return result ? RunTimes::of(store().project()).pair(result->request) : PairTimes();
}

QString CompareTimesPage::headerText() const {
  const auto& result = store().project().runComparison();
  if (!result || which_ == Times::kMemory || which_ == Times::kBuild) return {};
  if (!times().alike) return QStringLiteral("one run has only warm-up");
  if (times().comparable()) return {};
  const bool alike = times().unlike().isEmpty();
  return alike ? QStringLiteral("times of a busy machine") : QStringLiteral("times not taken alike");
}

void CompareTimesPage::refill() {
  const auto& result = store().project().runComparison();
  setRows(result ? timeRows(*result, which_, store().plan().get(), times().comparable(), times().alike)
                 : std::vector<TableRow>());
}

}  // namespace stepscope
