// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/table_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QMenu>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/common/turns.h"

namespace stepscope {

TablePanel::TablePanel(const ViewContext& context, const QString& id, const QString& title, std::vector<TableColumn> columns,
                       QWidget* parent)
    : View(context, id, title, parent),
      model_(new RowTableModel(std::move(columns), this)),
      proxy_(new QSortFilterProxyModel(this)),
      filter_(new QLineEdit),
      table_(new RowTableView) {
  const Metrics m = Metrics::current();
  proxy_->setSourceModel(model_);
  proxy_->setSortRole(RowTableModel::kSortRole);
  proxy_->setFilterKeyColumn(-1);
  proxy_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  table_->setModel(proxy_);
  table_->setSortingEnabled(true);
  proxy_->sort(-1);  // the order of the rows until a header is clicked
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  table_->sizeColumns(model_->columns());
  table_->setObjectName(id + QStringLiteral("_table"));
  table_->setAccessibleName(title);
  filter_->setPlaceholderText(QStringLiteral("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(QStringLiteral("Filter of %1").arg(title));
  body_ = new QVBoxLayout(this);
  body_->setContentsMargins(0, 0, 0, 0);
  body_->setSpacing(0);
  auto* top = new QVBoxLayout;
  top->setContentsMargins(qRound(0.6 * m.unit), qRound(0.4 * m.unit), qRound(0.6 * m.unit), qRound(0.4 * m.unit));
  top->addWidget(filter_);
  body_->addLayout(top);
  body_->addWidget(table_, 1);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    proxy_->setFilterFixedString(text);
    tellNothing();
    emit headerChanged();
  });
  connect(table_, &RowTableView::chosen, this, [this](const QModelIndex& now) {
    if (selecting_) return;
    const Selection& target = model_->row(proxy_->mapToSource(now).row()).target;
    if (target.empty()) return;
    selecting_ = true;
    selection().select(target);
    selecting_ = false;
  });
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& at) { activated(proxy_->mapToSource(at).row()); });
  connect(table_, &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    const QModelIndex index = table_->indexAt(at);
    if (!index.isValid()) return;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->setToolTipsVisible(true);  // they say what an action that is not offered waits for
    fillMenu(*menu, proxy_->mapToSource(index).row());
    menu->addAction(QStringLiteral("Copy rows\tCtrl+C"), this,
                    [this] { QApplication::clipboard()->setText(table_->chosenAsText()); });
    menu->popup(table_->viewport()->mapToGlobal(at));
  });
  connect(&this->selection(), &SelectionModel::selectionChanged, this, &TablePanel::followSelection);
}

QString TablePanel::headerText() const {
  const int all = model_->rowCount(), shown = proxy_->rowCount();
  if (all == 0 || !emptyText().isEmpty()) return {};  // rows of before are dropped when they are seen again
  return all == shown
             ? format::count(all)
             : QStringLiteral("%1 of %2, the rest hidden by the filter").arg(format::count(shown), format::count(all));
}

void TablePanel::find() {
  filter_->setFocus();
  filter_->selectAll();
}

QString TablePanel::saveState() const { return filter_->text(); }
void TablePanel::restoreState(const QString& state) { filter_->setText(state.left(500)); }
void TablePanel::setNothingText(const QString& text) {
  nothing_ = text;
  tellNothing();
}

// Nothing there and nothing found never look alike.
void TablePanel::tellNothing() {
  table_->setEmptyText(
      model_->rowCount() > 0
          ? QStringLiteral("No match among %1. The filter hides them.").arg(format::count(model_->rowCount()))
          : nothing_);
}

void TablePanel::setFilterPlaceholder(const QString& text) { filter_->setPlaceholderText(text); }
void TablePanel::sortBy(int column, Qt::SortOrder order) { table_->sortByColumn(column, order); }

void TablePanel::setRows(std::vector<TableRow> rows) {
  const bool mine = selecting_;
  selecting_ = true;
  model_->setRows(std::move(rows));
  selecting_ = mine;
  tellNothing();
  followSelection();
  emit headerChanged();
  emit emptyChanged();
}

void TablePanel::setColumns(std::vector<TableColumn> columns, std::vector<TableRow> rows) {
  const bool mine = selecting_;
  selecting_ = true;
  model_->setColumns(std::move(columns), std::move(rows));
  selecting_ = mine;
  table_->sizeColumns(model_->columns());
  emit headerChanged();
  emit emptyChanged();
}

int TablePanel::chosenRow() const {
  const QModelIndex now = table_->currentIndex();
  return now.isValid() ? proxy_->mapToSource(now).row() : -1;
}

void TablePanel::refillLater() {
  stale_ = true;
  emit emptyChanged();
  if (!isVisible() || queued_) return;
  // Several facts often arrive together; one refill serves them all.
  queued_ = true;
  turns::later(this, [this] {
    queued_ = false;
    if (!stale_ || !isVisible()) return;
    stale_ = false;
    refill();
  });
}

void TablePanel::showEvent(QShowEvent* event) {
  View::showEvent(event);
  // A layout shows several panels at once: each fills in a turn of its own.
  if (stale_) refillLater();
}

void TablePanel::followSelection() {
  if (selecting_) return;
  const Selection& s = selection().selection();
  selecting_ = true;
  table_->clearSelection();
  if (!s.empty()) {
    for (int i = 0; i < model_->rowCount(); ++i) {
      const Selection& t = model_->row(i).target;
      const bool same = (t.buffer >= 0 && t.buffer == s.buffer) || (t.value >= 0 && t.value == s.value) ||
                        (t.instruction >= 0 && t.instruction == s.instruction) ||
                        (t.node >= 0 && t.node == s.node && t.value < 0 && t.buffer < 0);
      if (!same) continue;
      const QModelIndex at = proxy_->mapFromSource(model_->index(i, 0));
      if (!at.isValid()) continue;
      table_->selectionModel()->setCurrentIndex(at, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
      table_->scrollTo(at);
      break;
    }
  }
  selecting_ = false;
}

}  // namespace stepscope
