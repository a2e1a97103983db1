// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/startup_table/startup_table_view.h"

#include <QMenu>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/pass_stages.h"
#include "views/startup_table/history_plot.h"
#include "views/startup_table/pass_places.h"

namespace stepscope {

namespace {

std::vector<TableColumn> columns(bool history) {
  std::vector<TableColumn> out{
      {QStringLiteral("Phase"), QStringLiteral("Phases of the build in the order they ran; children are indented"), false,
       14},
      {QStringLiteral("Time"), QStringLiteral("Wall-clock time, children included"), true, 6},
      {QStringLiteral("Share"), QStringLiteral("Percent of the whole build"), true, 6}};
  // What a pass did stands where it is seen; times of before and memory may lie behind the edge.
  if (history)
    out.push_back(
        {QStringLiteral("Change"),
         QStringLiteral("This time beside the median of the earlier start-ups, in percent of it; coloured where it is "
                        "outside of what three of them or more took, by 5 % and 0.1 ms at least"),
         true, 6});
  out.insert(out.end(),
             {{QStringLiteral("Matches"),
               QStringLiteral("Places where the pass applied; a click, or Return, lists them below"), true, 5},
              {QStringLiteral("Near misses"),
               QStringLiteral("Places where it almost applied; a click, or Return, lists them below with the first "
                              "condition that failed"),
               true, 7},
              {QStringLiteral("Nodes"), QStringLiteral("Live nodes after the pass, and the change"), true, 7}});
  if (history)
    out.insert(out.end(),
               {{QStringLiteral("Previous"),
                 QStringLiteral("The start-up before this one, of the same model in this project"), true, 6},
                {QStringLiteral("Median"), QStringLiteral("Half of the earlier start-ups were faster"), true, 6},
                {QStringLiteral("n"), QStringLiteral("Earlier start-ups that ran this phase to its end"), true, 3},
                {QStringLiteral("Min"), QStringLiteral("Fastest earlier start-up"), true, 6},
                {QStringLiteral("Max"), QStringLiteral("Slowest earlier start-up"), true, 6}});
  out.insert(out.end(),
             {{QStringLiteral("Items"), QStringLiteral("Nodes, matches or kernels the phase worked on"), true, 5},
              {QStringLiteral("Resident"), QStringLiteral("Resident memory of the worker when the phase ended"), true, 6},
              {QStringLiteral("Notes"), QStringLiteral("Decisions worth telling, or the error"), false, 20}});
  return out;
}

TableCell changeOf(std::int64_t ns, const EarlierTimes& earlier) {
  TableCell change;
  if (earlier.n == 0 || earlier.median <= 0) return change;
  const double by = static_cast<double>(ns - earlier.median) / static_cast<double>(earlier.median);
  change = {format::change(static_cast<double>(earlier.median), static_cast<double>(ns)), by,
            QStringLiteral("%1 beside the median of %2 earlier start-ups")
                .arg(format::timeDifference(ns - earlier.median), format::count(earlier.n))};
  const int news = earlier.news(ns);
  if (news != 0) change.role = news > 0 ? QStringLiteral("warn") : QStringLiteral("ok");
  return change;
}

void addHistory(TableRow& row, const EarlierTimes& earlier) {
  const auto time = [&](std::int64_t t) {
    return earlier.n > 0 ? TableCell(format::time(t), QVariant::fromValue<qint64>(t), format::timeExact(t))
                         : TableCell({}, QVariant::fromValue<qint64>(-1));
  };
  row.cells.insert(row.cells.end(), {time(earlier.previous), time(earlier.median),
                                     TableCell(earlier.n > 0 ? format::count(earlier.n) : QString(), earlier.n),
                                     time(earlier.min), time(earlier.max)});
}

// Matches, near misses and nodes of a pass; numbers with something behind them look like links.
void addPass(TableRow& row, const snapshot::PassReport& pass) {
  const auto link = [](int n, const QString& tip) {
    TableCell cell(format::count(n), n, tip);
    cell.role = n > 0 ? QStringLiteral("accent") : QStringLiteral("faint");
    return cell;
  };
  row.cells.push_back(link(pass.matches(), {}));
  QStringList misses;
  for (int i = 0; i < std::min(20, pass.near_misses_size()); ++i)
    misses << QStringLiteral("node %1: %2")
                  .arg(pass.near_misses(i).node())
                  .arg(format::visible(pass.near_misses(i).condition()));
  if (pass.near_misses_size() > 20) misses << QStringLiteral("and %1 more").arg(pass.near_misses_size() - 20);
  row.cells.push_back(link(pass.near_misses_size(), misses.join('\n')));
  const std::int64_t change = pass.nodes_after() - pass.nodes_before();
  row.cells.push_back(
      {format::count(pass.nodes_after()) +
           (change ? QStringLiteral(" (%1%2)").arg(change > 0 ? QStringLiteral("+") : QString(), format::count(change))
                   : QString()),
       QVariant::fromValue<qint64>(pass.nodes_after())});
}

}  // namespace

StartupTableView::StartupTableView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("startup_table"), QStringLiteral("Start-up phases"), columns(false), parent),
      plot_(new HistoryPlot),
      places_(new PassPlaces(context)) {
  // The history stands beside the table.
  body()->removeWidget(table());
  auto* halves = new QSplitter(Qt::Horizontal);
  halves->setHandleWidth(1);
  halves->setChildrenCollapsible(false);
  auto* lists = new QSplitter(Qt::Vertical);
  lists->setHandleWidth(1);
  lists->setChildrenCollapsible(false);
  lists->addWidget(table());
  lists->addWidget(places_);
  halves->addWidget(lists);
  halves->addWidget(plot_);
  halves->setStretchFactor(0, 1);
  halves->setStretchFactor(1, 0);
  halves->setSizes({1'000, plot_->sizeHint().width()});
  plot_->hide();
  body()->addWidget(halves, 1);
  connect(&store(), &SnapshotStore::phasesChanged, this, &StartupTableView::refillLater);
  connect(&store().project(), &ProjectFacts::startupHistoryChanged, this, &StartupTableView::refillLater);
  connect(table()->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &StartupTableView::showChosen);
  connect(table(), &QTableView::clicked, this, [this](const QModelIndex& at) { openPlaces(at.column(), false); });
  connect(places_, &PassPlaces::goWanted, this, &StartupTableView::showInGraph);
  // A place that is selected leaves its pass the chosen one.
  connect(&selection(), &SelectionModel::selectionChanged, this, [this] {
    if (places_->isVisibleTo(this)) table()->selectRow(table()->currentIndex().row());
  });
}

QString StartupTableView::emptyText() const {
  return store().phases().empty()
             ? QStringLiteral("Nothing built yet.\nOpen a model (Ctrl+O): the time of each phase of its build appears here.")
             : QString();
}

void StartupTableView::refill() {
  const auto& phases = store().phases();
  std::int64_t all = 0;
  for (const auto& p : phases) all += p.depth() == 0 ? std::max<std::int64_t>(0, p.ns()) : 0;
  const EarlierStartups earlier(store().project().startupHistory());
  const bool history = earlier.any();
  const QString chosen = paths_.value(chosenRow());
  paths_ = phasePaths(phases);
  std::vector<TableRow> rows;
  qint64 order = 0;
  for (const auto& p : phases) {
    TableRow row;
    const int depth = std::clamp(p.depth(), 0, 12);
    TableCell name(QString(3 * depth, QChar(0x2002)) + format::visible(p.name()), order++, format::visible(p.name()));
    row.key = order - 1;
    if (depth > 0) name.role = QStringLiteral("muted");
    TableCell share(format::percent(static_cast<double>(p.ns()), static_cast<double>(all)),
                    QVariant::fromValue<qint64>(p.ns()), QStringLiteral("of %1, the whole build").arg(format::time(all)));
    if (depth == 0 && all > 0) share.share = static_cast<double>(p.ns()) / static_cast<double>(all);
    row.cells = {name, {format::time(p.ns()), QVariant::fromValue<qint64>(p.ns()), format::timeExact(p.ns())}, share};
    const EarlierTimes before = history ? earlier.of(paths_[order - 1]) : EarlierTimes();
    if (history) row.cells.push_back(changeOf(p.ns(), before));
    if (p.has_pass())
      addPass(row, p.pass());
    else
      row.cells.resize(row.cells.size() + 3);
    if (history) addHistory(row, before);
    row.cells.push_back({p.count() > 0 ? format::count(p.count()) : QString(), QVariant::fromValue<qint64>(p.count())});
    row.cells.push_back({p.peak_bytes() > 0 ? format::bytes(p.peak_bytes()) : QString(),
                         QVariant::fromValue<qint64>(p.peak_bytes()), format::bytesExact(p.peak_bytes())});
    QStringList notes;
    for (const auto& note : p.pass().notes()) notes << format::visible(note);
    row.cells.push_back({notes.join(QStringLiteral("; ")), {}, notes.join('\n')});
    if (!p.error().empty()) {
      const QString error = format::visible(p.error());
      row.cells.back() = TableCell(error, error, error);
      row.cells.back().role = QStringLiteral("error");
      row.cells.front().role = QStringLiteral("error");
    }
    rows.push_back(std::move(row));
  }
  const auto wanted = columns(history);
  if (wanted.size() != model().columns().size()) {
    setColumns(wanted, std::move(rows));
  } else {
    setRows(std::move(rows));
  }
  plot_->setVisible(history);
  const auto same = paths_.indexOf(chosen);
  for (int i = 0; !chosen.isEmpty() && same >= 0 && i < table()->model()->rowCount(); ++i)
    if (const QModelIndex at = table()->model()->index(i, 0); at.data(RowTableModel::kKeyRole).toLongLong() == same)
      table()->setCurrentIndex(at);
  showChosen();
}

void StartupTableView::activated(int) { openPlaces(table()->currentIndex().column(), true); }

// The list of a pass that has none stays closed.
void StartupTableView::openPlaces(int column, bool withKeyboard) {
  const int row = chosenRow();
  if (row < 0 || row >= static_cast<int>(store().phases().size())) return;
  const auto& span = store().phases()[static_cast<std::size_t>(row)];
  if (!span.has_pass() || (span.pass().matches() == 0 && span.pass().near_misses_size() == 0)) return;
  const QString title = table()->model()->headerData(column, Qt::Horizontal).toString();
  places_->show(row);
  places_->open(title == QStringLiteral("Matches")       ? PassPlaces::Kind::kMatches
                : title == QStringLiteral("Near misses") ? PassPlaces::Kind::kNearMisses
                                                         : PassPlaces::Kind::kAll,
                withKeyboard);
}

// Of a pass: what it changed, the places where it almost applied with what failed, and the nodes it made that are still
// there; each is a way into the graph.
void StartupTableView::fillMenu(QMenu& menu, int row) {
  const auto at = static_cast<std::size_t>(model().row(row).key);
  if (at >= store().phases().size() || !store().phases()[at].has_pass()) return;
  const snapshot::PassReport& pass = store().phases()[at].pass();
  constexpr int kMost = 40;
  const PassStages::Range range = PassStages::of(store()).around(static_cast<int>(at));
  if (PassStages::isPass(range.after)) {
    QAction* changed = menu.addAction(QStringLiteral("What it changed, in the graph"), this,
                                      [this, range] { showInGraph(range.after, range.before, -1); });
    changed->setObjectName(QStringLiteral("pass_changes"));
  }
  const auto go = [this, &range](QMenu& into, int node, const QString& text) {
    const bool there = store().graph() && store().graph()->node(node);
    QAction* action = into.addAction(text, this, [this, node, there, stop = range.before] {
      // The graph may show an earlier stop, which need not have the node.
      const QStringList& stops = PassStages::of(store()).stops();
      showInGraph(!there ? stop : stops.isEmpty() ? QString() : stops.back(), {}, node);
    });
    action->setData(node);
    action->setEnabled(there || !range.before.isEmpty());
    if (!there)
      action->setToolTip(QStringLiteral("A later pass took the node away; the graph as the pass found it shows it"));
  };
  if (pass.near_misses_size() > 0) {
    QMenu* misses = menu.addMenu(QStringLiteral("Near misses"));
    misses->setObjectName(QStringLiteral("pass_near_misses"));
    for (int i = 0; i < std::min(kMost, pass.near_misses_size()); ++i) {
      const auto& miss = pass.near_misses(i);
      const auto* node = store().graph() ? store().graph()->node(miss.node()) : nullptr;
      go(*misses, miss.node(),
         QStringLiteral("%1: %2").arg(
             node ? names::node(*store().graph(), miss.node()) : QStringLiteral("node %1").arg(miss.node()),
             format::visible(miss.condition())));
    }
    if (pass.near_misses_size() > kMost)
      misses->addAction(QStringLiteral("and %1 more").arg(pass.near_misses_size() - kMost))->setEnabled(false);
  }
  std::vector<const snapshot::Node*> made;
  if (store().graph())
    for (const auto& node : store().graph()->graph().nodes())
      if (node.provenance().pass() == pass.name()) made.push_back(&node);
  if (!made.empty()) {
    QMenu* matches = menu.addMenu(QStringLiteral("Made by it"));
    matches->setObjectName(QStringLiteral("pass_matches"));
    for (std::size_t i = 0; i < made.size() && i < kMost; ++i)
      go(*matches, made[i]->id(), names::node(*store().graph(), made[i]->id()));
    if (made.size() > kMost) matches->addAction(QStringLiteral("and %1 more").arg(made.size() - kMost))->setEnabled(false);
  }
}

void StartupTableView::showInGraph(const QString& stop, const QString& base, int node) {
  emit wishes().command(QStringLiteral("view_graph"));  // it may not be there yet
  if (stop.isEmpty())
    selection().select(Selection::ofNode(node));
  else
    emit wishes().showStop(stop, base, node);
}

void StartupTableView::showChosen() {
  const StartupHistory& history = store().project().startupHistory();
  const int row = chosenRow();
  if (places_->isVisibleTo(this)) places_->show(row);
  const QString path = row >= 0 && row < paths_.size() ? paths_[row] : QString();
  plot_->show(path.isEmpty() ? QStringLiteral("Whole build") : format::visible(path), history.startups,
              EarlierStartups(history).points(path));
}

}  // namespace stepscope
