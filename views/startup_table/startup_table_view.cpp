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

namespace stepscope {

namespace {

std::vector<TableColumn> columns(bool history) {
  std::vector<TableColumn> out{
      {QStringLiteral("Phase"), QStringLiteral("Phases of the build in the order they ran; children are indented"), false,
       14},
      {QStringLiteral("Time"), QStringLiteral("Wall-clock time, children included"), true, 6},
      {QStringLiteral("Share"), QStringLiteral("Percent of the whole build"), true, 6}};
  if (history) {
    out.insert(out.end(),
               {{QStringLiteral("Change"),
                 QStringLiteral(
                     "This time beside the median of the earlier start-ups, in percent of it; coloured where it is outside "
                     "of what three of them or more took, by 5 % and 0.1 ms at least"),
                 true, 6},
                {QStringLiteral("Previous"),
                 QStringLiteral("The start-up before this one, of the same model in this project"), true, 6},
                {QStringLiteral("Median"), QStringLiteral("Half of the earlier start-ups were faster"), true, 6},
                {QStringLiteral("n"), QStringLiteral("Earlier start-ups that ran this phase to its end"), true, 3},
                {QStringLiteral("Min"), QStringLiteral("Fastest earlier start-up"), true, 6},
                {QStringLiteral("Max"), QStringLiteral("Slowest earlier start-up"), true, 6}});
  }
  out.insert(
      out.end(),
      {{QStringLiteral("Items"), QStringLiteral("Nodes, matches or kernels the phase worked on"), true, 5},
       {QStringLiteral("Resident"), QStringLiteral("Resident memory of the worker when the phase ended"), true, 6},
       {QStringLiteral("Nodes"), QStringLiteral("Live nodes after the pass, and the change"), true, 7},
       {QStringLiteral("Matches"), QStringLiteral("Places where the pass applied"), true, 5},
       {QStringLiteral("Near misses"),
        QStringLiteral("Places where it almost applied; the tooltip names the first failed condition of each"), true, 7},
       {QStringLiteral("Notes"), QStringLiteral("Decisions worth telling, or the error"), false, 20}});
  return out;
}

void addHistory(TableRow& row, std::int64_t ns, const EarlierTimes& earlier) {
  const auto time = [&](std::int64_t t) {
    return earlier.n > 0 ? TableCell(format::time(t), QVariant::fromValue<qint64>(t), format::timeExact(t))
                         : TableCell({}, QVariant::fromValue<qint64>(-1));
  };
  TableCell change;
  if (earlier.n > 0 && earlier.median > 0) {
    const double by = static_cast<double>(ns - earlier.median) / static_cast<double>(earlier.median);
    change = {format::change(static_cast<double>(earlier.median), static_cast<double>(ns)), by,
              QStringLiteral("%1 beside the median of %2 earlier start-ups")
                  .arg(format::timeDifference(ns - earlier.median), format::count(earlier.n))};
    const int news = earlier.news(ns);
    if (news != 0) change.role = news > 0 ? QStringLiteral("warn") : QStringLiteral("ok");
  }
  row.cells.insert(row.cells.end(), {change, time(earlier.previous), time(earlier.median),
                                     TableCell(earlier.n > 0 ? format::count(earlier.n) : QString(), earlier.n),
                                     time(earlier.min), time(earlier.max)});
}

}  // namespace

StartupTableView::StartupTableView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("startup_table"), QStringLiteral("Phases"), columns(false), parent),
      plot_(new HistoryPlot) {
  // The history stands beside the table.
  body()->removeWidget(table());
  auto* halves = new QSplitter(Qt::Horizontal);
  halves->setHandleWidth(1);
  halves->setChildrenCollapsible(false);
  halves->addWidget(table());
  halves->addWidget(plot_);
  halves->setStretchFactor(0, 1);
  halves->setStretchFactor(1, 0);
  halves->setSizes({1'000, plot_->sizeHint().width()});
  plot_->hide();
  body()->addWidget(halves, 1);
  connect(&store(), &SnapshotStore::phasesChanged, this, &StartupTableView::refillLater);
  connect(&store().project(), &ProjectFacts::startupHistoryChanged, this, &StartupTableView::refillLater);
  connect(table()->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &StartupTableView::showHistory);
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
    if (history) addHistory(row, p.ns(), earlier.of(paths_[order - 1]));
    row.cells.push_back({p.count() > 0 ? format::count(p.count()) : QString(), QVariant::fromValue<qint64>(p.count())});
    row.cells.push_back({p.peak_bytes() > 0 ? format::bytes(p.peak_bytes()) : QString(),
                         QVariant::fromValue<qint64>(p.peak_bytes()), format::bytesExact(p.peak_bytes())});
    if (p.has_pass()) {
      const auto& pass = p.pass();
      const std::int64_t change = pass.nodes_after() - pass.nodes_before();
      row.cells.push_back(
          {format::count(pass.nodes_after()) +
               (change ? QStringLiteral(" (%1%2)").arg(change > 0 ? QStringLiteral("+") : QString(), format::count(change))
                       : QString()),
           QVariant::fromValue<qint64>(pass.nodes_after())});
      row.cells.push_back({format::count(pass.matches()), pass.matches()});
      QStringList misses;
      for (int i = 0; i < std::min(20, pass.near_misses_size()); ++i)
        misses << QStringLiteral("node %1: %2")
                      .arg(pass.near_misses(i).node())
                      .arg(format::visible(pass.near_misses(i).condition()));
      if (pass.near_misses_size() > 20) misses << QStringLiteral("and %1 more").arg(pass.near_misses_size() - 20);
      row.cells.push_back({format::count(pass.near_misses_size()), pass.near_misses_size(), misses.join('\n')});
      if (pass.near_misses_size() > 0) row.target = Selection::ofNode(pass.near_misses(0).node());
      QStringList notes;
      for (const auto& note : pass.notes()) notes << format::visible(note);
      row.cells.push_back({notes.join(QStringLiteral("; ")), {}, notes.join('\n')});
    } else {
      row.cells.resize(row.cells.size() + 4);
    }
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
  showHistory();
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
      if (!there)
        showInGraph(stop, {}, node);
      else if (stops.isEmpty())
        selection().select(Selection::ofNode(node));
      else
        showInGraph(stops.back(), {}, node);
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
  emit wishes().showStop(stop, base, node);
}

void StartupTableView::showHistory() {
  const StartupHistory& history = store().project().startupHistory();
  const int row = chosenRow();
  const QString path = row >= 0 && row < paths_.size() ? paths_[row] : QString();
  plot_->show(path.isEmpty() ? QStringLiteral("Whole build") : format::visible(path), history.startups,
              EarlierStartups(history).points(path));
}

}  // namespace stepscope
