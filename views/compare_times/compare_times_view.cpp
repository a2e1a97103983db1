// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare_times/compare_times_view.h"

#include <algorithm>

#include "views/common/comparison_cells.h"

namespace stepscope {

CompareTimesView::CompareTimesView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("compare_times"), QStringLiteral("Times and memory"),
                 timeColumns(Times::kOperators), parent),
      which_(new QComboBox(this)) {
  which_->addItems({QStringLiteral("Operators"), QStringLiteral("Phases of the step"), QStringLiteral("Build"),
                    QStringLiteral("Memory")});
  which_->setAccessibleName(QStringLiteral("Table"));
  which_->setObjectName(QStringLiteral("compare_times_which"));
  which_->hide();
  connect(which_, &QComboBox::currentIndexChanged, this, &CompareTimesView::refillLater);
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareTimesView::refillLater);
  connect(&RunTimes::of(store().project()), &RunTimes::changed, this, &CompareTimesView::refillLater);
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareTimesView::emptyChanged);
  connect(&store(), &SnapshotStore::planChanged, this, &CompareTimesView::refillLater);
}

QString CompareTimesView::emptyText() const { return comparison::noneText(store().project()); }

bool CompareTimesView::comparable() const {
  const auto& result = store().project().runComparison();
  return !result || RunTimes::of(store().project()).pair(result->request).comparable();
}

QString CompareTimesView::headerText() const {
  const auto& result = store().project().runComparison();
  const bool unlike = result && which() != Times::kMemory && which() != Times::kBuild && !comparable();
  return unlike ? QStringLiteral("not taken alike: see Compare") : TablePanel::headerText();
}

QString CompareTimesView::saveState() const { return QString::number(which_->currentIndex()); }
void CompareTimesView::restoreState(const QString& state) {
  which_->setCurrentIndex(std::clamp(state.toInt(), 0, which_->count() - 1));
}

void CompareTimesView::refill() {
  const auto& result = store().project().runComparison();
  auto rows = result ? timeRows(*result, which(), store().plan().get(), comparable()) : std::vector<TableRow>();
  if (result && rows.empty()) {
    TableRow none;
    none.cells = {{QStringLiteral("not recorded")}};
    none.cells[0].role = QStringLiteral("muted");
    rows.push_back(std::move(none));
  }
  const auto columns = timeColumns(which());
  if (columns.size() != model().columns().size() || columns[0].title != model().columns()[0].title ||
      columns[1].title != model().columns()[1].title) {
    setColumns(columns, std::move(rows));
  } else {
    setRows(std::move(rows));
  }
}

}  // namespace stepscope
