// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/numbers_page.h"

#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/compare/divergence_rows.h"

namespace stepscope {

CompareNumbersPage::CompareNumbersPage(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("compare_numbers"), QStringLiteral("First divergence"), divergenceColumns(),
                 parent) {
  setFilterPlaceholder(QStringLiteral("Filter by step, quantity or value"));
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareNumbersPage::refillLater);
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareNumbersPage::emptyChanged);
  connect(&store(), &SnapshotStore::graphChanged, this, &CompareNumbersPage::refillLater);
}

QString CompareNumbersPage::headerText() const {
  const auto& result = store().project().runComparison();
  if (!result || result->outside == 0) return {};
  const auto shown = static_cast<std::int64_t>(result->divergences.size());
  const QString text =
      QStringLiteral("%1 outside %2").arg(format::count(result->outside), comparison::toleranceText(result->request));
  return shown < result->outside ? QStringLiteral("first %1 of %2").arg(format::count(shown), text) : text;
}

QString CompareNumbersPage::emptyText() const {
  const auto& result = store().project().runComparison();
  if (!result) return comparison::noneText(store().project());
  if (const QString same = comparison::oneRunText(store().project()); !same.isEmpty()) return same;
  if (result->outside > 0) return {};
  if (result->both == 0 && result->statistics == 0)
    return QStringLiteral(
        "The runs share no step number, so there is nothing to compare step by step.\nTrain both from the same step.");
  const QString seen = result->statistics > 0 ? QStringLiteral("Losses, gradient norms and %1 statistics of watched values")
                                                    .arg(format::count(result->statistics))
                                              : QStringLiteral("Losses and gradient norms");
  const QString agree = QStringLiteral("No divergence: %1 of %2 steps agree within %3.")
                            .arg(seen, format::count(result->both), comparison::toleranceText(result->request));
  const QString first = result->unequal
                            ? QStringLiteral("First unequal number: %1.").arg(comparison::divergenceText(*result->unequal))
                            : QStringLiteral("They are equal in every bit.");
  const QString more = result->statistics > 0
                           ? QString()
                           : QStringLiteral("\nWatch values (Watch) in both runs to compare their statistics too.");
  const QString unmeasured =
      result->unmeasured.isEmpty() ? QString() : QStringLiteral("\nNot compared: %1.").arg(result->unmeasured);
  return agree + '\n' + first + unmeasured + more;
}

void CompareNumbersPage::refill() {
  const auto& result = store().project().runComparison();
  setRows(result ? divergenceRows(*result, store().graph().get()) : std::vector<TableRow>());
}

}  // namespace stepscope
