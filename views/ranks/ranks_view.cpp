// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/ranks/ranks_view.h"

#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/rank_times.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/ranks/rank_rows.h"

namespace stepscope {
namespace {
constexpr int kMostRows = 8;  // of ranks, that are seen without scrolling
}

RanksView::RanksView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("ranks"), QStringLiteral("Ranks"), ranks::columns(), parent),
      summary_(textLine("", "ranks_summary")),
      collectives_(new RowTableModel(ranks::collectiveColumns(), this)),
      collectiveTable_(new RowTableView) {
  setFilterPlaceholder(QStringLiteral("Filter ranks"));
  const Metrics m = Metrics::current();
  summary_->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  body()->insertWidget(0, summary_);
  collectiveTable_->setModel(collectives_);
  collectiveTable_->setObjectName(QStringLiteral("rank_collectives"));
  collectiveTable_->setAccessibleName(QStringLiteral("Collectives of the ranks"));
  collectiveTable_->setSelectionMode(QAbstractItemView::SingleSelection);
  collectiveTable_->sizeColumns(ranks::collectiveColumns());
  body()->addWidget(collectiveTable_, 1);
  connect(collectiveTable_, &QTableView::clicked, this, &RanksView::showCollective);
  connect(collectiveTable_, &QTableView::activated, this, &RanksView::showCollective);
  connect(&RankTimes::of(store().project()), &RankTimes::changed, this, [this] {
    refillLater();
    emit emptyChanged();
    emit headerChanged();
  });
  connect(&store(), &SnapshotStore::planChanged, this, &RanksView::refillLater);  // rows lead to other instructions
}

QString RanksView::headerText() const {
  const int count = RankTimes::of(store().project()).count();
  return count == 0 ? QString() : QStringLiteral("%1 processes").arg(format::count(count));
}

QString RanksView::emptyText() const {
  if (RankTimes::of(store().project()).count() > 0) return {};
  return QStringLiteral(
      "No run of several processes.\nRecord one with “mpirun -n 2 stepscope train MODEL --distributed mpi --project "
      "FILE.stepscope”, then open the file: its ranks appear here next to each other.");
}

void RanksView::refill() {
  const RankTimes::Table& table = RankTimes::of(store().project()).table();
  setRows(ranks::rows(table));
  // A few ranks leave the room to the collectives.
  const int lines = std::clamp(static_cast<int>(table.ranks.size()), 1, kMostRows) + 2;
  this->table()->setMaximumHeight(table.ranks.size() > kMostRows ? QWIDGETSIZE_MAX : lines * Metrics::current().row);
  collectives_->setRows(ranks::collectiveRows(table, store().plan()));
  collectiveTable_->sizeColumns(ranks::collectiveColumns());
  say(summary_, ranks::summary(table), {});
}

void RanksView::showCollective(const QModelIndex& at) {
  const Selection target = collectives_->row(at.row()).target;
  if (!target.empty()) selection().select(target);
}

}  // namespace stepscope
