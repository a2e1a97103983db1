// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/runs_page.h"

#include <QScrollBar>
#include <QVBoxLayout>

#include "views/common/comparison_cells.h"
#include "views/common/tokens.h"
#include "views/compare/compare_rows.h"

namespace stepscope {
namespace {
constexpr int kCurves = 14;  // units, at least
}  // namespace

CompareRunsPage::CompareRunsPage(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("compare_both"), QStringLiteral("Runs"), parent),
      model_(new RowTableModel({{QString(), QStringLiteral("What is compared"), false, 10},
                                {QStringLiteral("A"), QStringLiteral("Run A"), true, 5, true},
                                {QStringLiteral("B"), QStringLiteral("Run B"), true, 5, true},
                                {QStringLiteral("B − A"), QStringLiteral("Difference"), true}},
                               this)),
      table_(new RowTableView),
      curves_(new CompareCurves),
      halves_(new QSplitter(Qt::Horizontal)) {
  const Metrics m = Metrics::current();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  halves_->setHandleWidth(1);
  halves_->setChildrenCollapsible(false);
  table_->setModel(model_);
  table_->sizeColumns(model_->columns());
  table_->setObjectName(QStringLiteral("compare_summary"));
  table_->setAccessibleName(QStringLiteral("Both runs"));
  table_->setContextMenuPolicy(Qt::NoContextMenu);
  curves_->setMinimumWidth(kCurves * m.unit);
  halves_->addWidget(table_);
  halves_->addWidget(curves_);
  // The numbers need their place whole; curves can be of any width.
  halves_->setStretchFactor(0, 1);
  halves_->setStretchFactor(1, 1);
  column->addWidget(halves_, 1);
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareRunsPage::showResult);
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareRunsPage::emptyChanged);
  connect(&RunTimes::of(store().project()), &RunTimes::changed, this, &CompareRunsPage::showResult);
  showResult();
}

QString CompareRunsPage::emptyText() const { return comparison::noneText(store().project()); }

void CompareRunsPage::showResult() {
  const auto& result = store().project().runComparison();
  const PairTimes times = result ? RunTimes::of(store().project()).pair(result->request) : PairTimes();
  model_->setRows(result ? summaryRows(*result, times) : std::vector<TableRow>());
  curves_->setComparison(result);
  arrange();
  emit emptyChanged();
}

// Beside each other where the numbers have their place whole, else one below the other.
void CompareRunsPage::arrange() {
  const int unit = Metrics::current().unit, numbers = table_->leastWidth() + table_->verticalScrollBar()->sizeHint().width();
  const bool beside = width() >= numbers + kCurves * unit;
  if (beside != (halves_->orientation() == Qt::Horizontal)) {
    halves_->setOrientation(beside ? Qt::Horizontal : Qt::Vertical);
    halves_->setSizes(beside ? QList<int>{36 * unit, 19 * unit} : QList<int>{20 * unit, 14 * unit});
  }
  if (beside && table_->width() < numbers) halves_->setSizes({numbers, width() - numbers});
}

void CompareRunsPage::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  arrange();
}

}  // namespace stepscope
