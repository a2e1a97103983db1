// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/runs_page.h"

#include <QHeaderView>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/common/comparison_cells.h"
#include "views/common/tokens.h"
#include "views/compare/compare_rows.h"

namespace stepscope {

CompareRunsPage::CompareRunsPage(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("compare_both"), QStringLiteral("Runs"), parent),
      model_(new RowTableModel({{QString(), QStringLiteral("What is compared"), false, 10},
                                {QStringLiteral("A"), QStringLiteral("Run A"), true, 9},
                                {QStringLiteral("B"), QStringLiteral("Run B"), true, 9},
                                {QStringLiteral("B − A"), QStringLiteral("Difference"), true, 8}},
                               this)),
      table_(new RowTableView),
      curves_(new CompareCurves) {
  const Metrics m = Metrics::current();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  auto* halves = new QSplitter(Qt::Horizontal);
  halves->setHandleWidth(1);
  halves->setChildrenCollapsible(false);
  table_->setModel(model_);
  table_->horizontalHeader()->setStretchLastSection(false);
  for (const int of : {1, 2, 3}) table_->horizontalHeader()->setSectionResizeMode(of, QHeaderView::Stretch);
  table_->sizeColumns(model_->columns());
  table_->setObjectName(QStringLiteral("compare_summary"));
  table_->setAccessibleName(QStringLiteral("Both runs"));
  table_->setContextMenuPolicy(Qt::NoContextMenu);
  table_->setMinimumWidth(14 * m.unit);
  curves_->setMinimumWidth(14 * m.unit);
  halves->addWidget(table_);
  halves->addWidget(curves_);
  // The numbers need their place whole; curves can be of any width.
  halves->setStretchFactor(0, 1);
  halves->setStretchFactor(1, 1);
  halves->setSizes({36 * m.unit, 19 * m.unit});
  column->addWidget(halves, 1);
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
  emit emptyChanged();
}

}  // namespace stepscope
