// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/startup_table/pass_places.h"

#include <QToolButton>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/pass_stages.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kMost = 500;  // lines of one kind

QString nothingIn(const snapshot::PhaseSpan* span) {
  if (!span) return QStringLiteral("Choose a pass above.");
  if (!span->has_pass())
    return QStringLiteral("%1 is no pass: only passes have matches and near misses.").arg(format::visible(span->name()));
  return span->pass().matches() > 0 ? QStringLiteral("It removed nodes there, or later passes changed what it made.")
                                    : QStringLiteral("It found no place in this model, and none where it almost applied.");
}

}  // namespace

PassPlaces::PassPlaces(const ViewContext& context, QWidget* parent)
    : QWidget(parent), context_(context), title_(new QLabel), table_(new RowTableView) {
  const Metrics m = Metrics::current();
  title_->setTextFormat(Qt::PlainText);
  title_->setProperty("role", "muted");
  title_->setObjectName(QStringLiteral("pass_places_title"));
  auto* close = new QToolButton;
  close->setIcon(icon(QStringLiteral("close")));
  close->setAutoRaise(true);
  close->setToolTip(QStringLiteral("Close the list"));
  close->setAccessibleName(close->toolTip());
  close->setObjectName(QStringLiteral("pass_places_close"));
  connect(close, &QToolButton::clicked, this, &QWidget::hide);
  const std::vector<TableColumn> columns{
      {QStringLiteral("Place"), QStringLiteral("Whether the pass applied there, or almost did"), false, 7},
      {QStringLiteral("Node"), QStringLiteral("A node that it made, or that it left alone; a click shows it in the graph"),
       false, 16},
      {QStringLiteral("Why"), QStringLiteral("Of a near miss: the first condition that failed"), false, 24}};
  model_ = new RowTableModel(columns, this);
  table_->setModel(model_);
  table_->sizeColumns(columns);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setObjectName(QStringLiteral("pass_places"));
  table_->setAccessibleName(QStringLiteral("Matches and near misses of the pass"));
  auto* top = new QHBoxLayout;
  top->setContentsMargins(m.padding, 0, qRound(0.4 * m.unit), 0);
  top->addWidget(title_, 1);
  top->addWidget(close);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addLayout(top);
  all->addWidget(table_, 1);
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& at) { go(at.row()); });
  // A double click has gone there with its first half.
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& at) { go(at.row()); });
  hide();
}

QSize PassPlaces::sizeHint() const {
  const Metrics m = Metrics::current();
  return {18 * m.unit, 12 * m.unit};
}

void PassPlaces::addNode(std::vector<TableRow>& rows, Kind kind, int node, const QString& why) {
  const GraphPtr& graph = context_.store.graph();
  const QStringList& stops = PassStages::of(context_.store).stops();
  const bool there = graph && graph->node(node);
  // The graph view may show an earlier stop, which need not have the node.
  places_.push_back({kind,
                     !there            ? before_
                     : stops.isEmpty() ? QString()
                                       : stops.back(),
                     {},
                     node,
                     there || !before_.isEmpty()});
  TableRow row;
  TableCell what(kind == Kind::kMatches ? QStringLiteral("match") : QStringLiteral("near miss"));
  what.role = kind == Kind::kMatches ? QStringLiteral("ok") : QStringLiteral("warn");
  TableCell name(
      there ? names::node(*graph, node) : QStringLiteral("node %1").arg(node), {},
      there ? QString() : QStringLiteral("A later pass took the node away; the graph as the pass found it shows it"));
  name.role = places_.back().possible ? QStringLiteral("accent") : QStringLiteral("faint");
  row.cells = {what, name, {why, {}, why}};
  rows.push_back(std::move(row));
}

void PassPlaces::show(int span) {
  const auto& phases = context_.store.phases();
  const snapshot::PhaseSpan* chosen =
      span >= 0 && span < static_cast<int>(phases.size()) ? &phases[static_cast<std::size_t>(span)] : nullptr;
  places_.clear();
  before_.clear();
  std::vector<TableRow> rows;
  if (chosen && chosen->has_pass()) {
    const snapshot::PassReport& pass = chosen->pass();
    const PassStages::Range range = PassStages::of(context_.store).around(span);
    before_ = range.before;
    if (PassStages::isPass(range.after)) {
      TableRow row;
      TableCell changed(QStringLiteral("What it changed, in the graph"));
      changed.role = QStringLiteral("accent");
      row.cells = {TableCell(QStringLiteral("all")), changed, {}};
      rows.push_back(std::move(row));
      places_.push_back({Kind::kAll, range.after, range.before, -1, true});
    }
    int made = 0;
    if (const GraphPtr& graph = context_.store.graph())
      for (const auto& node : graph->graph().nodes())
        if (node.provenance().pass() == pass.name() && ++made <= kMost) addNode(rows, Kind::kMatches, node.id(), {});
    for (int i = 0; i < std::min(kMost, pass.near_misses_size()); ++i)
      addNode(rows, Kind::kNearMisses, pass.near_misses(i).node(), format::visible(pass.near_misses(i).condition()));
    title_->setText(QStringLiteral("%1 · matches %2 · nodes made that are still there %3 · near misses %4")
                        .arg(format::visible(pass.name()), format::count(pass.matches()), format::count(made),
                             format::count(pass.near_misses_size())));
  } else {
    title_->setText(chosen ? format::visible(chosen->name()) : QStringLiteral("Places of a pass"));
  }
  table_->setEmptyText(nothingIn(chosen));
  table_->setAccessibleDescription(title_->text());
  model_->setRows(std::move(rows));
}

void PassPlaces::open(Kind kind, bool withKeyboard) {
  QWidget::show();
  const auto first =
      std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return kind == Kind::kAll || p.kind == kind; });
  if (first != places_.end()) {
    const QModelIndex at = model_->index(static_cast<int>(first - places_.begin()), 0);
    table_->setCurrentIndex(at);
    table_->scrollTo(at, QAbstractItemView::PositionAtTop);
  }
  if (withKeyboard) table_->setFocus();
}

void PassPlaces::go(int row) {
  if (row < 0 || row >= static_cast<int>(places_.size())) return;
  const Place place = places_[static_cast<std::size_t>(row)];
  if (place.possible) emit goWanted(place.stop, place.base, place.node);
}

}  // namespace stepscope
