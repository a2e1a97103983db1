// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/startup_table/startup_table_view.h"

#include "views/common/format.h"

namespace stepscope {

StartupTableView::StartupTableView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("startup_table"), tr("Start-up"),
                 {{tr("Phase"), tr("Phases of the build in the order they ran; children are indented"), false, 18},
                  {tr("Time"), tr("Wall-clock time, children included"), true, 7},
                  {tr("Share"), tr("Percent of the whole build"), true, 7},
                  {tr("Items"), tr("Nodes, matches or kernels the phase worked on"), true, 6},
                  {tr("Resident"), tr("Resident memory of the worker when the phase ended"), true, 8},
                  {tr("Nodes"), tr("Live nodes after the pass, and the change"), true, 9},
                  {tr("Matches"), tr("Places where the pass applied"), true, 6},
                  {tr("Near misses"), tr("Places where it almost applied; the tooltip names the first failed condition of each"), true, 8},
                  {tr("Notes"), tr("Decisions worth telling, or the error"), false, 20}},
                 parent) {
  connect(&store(), &SnapshotStore::phasesChanged, this, &StartupTableView::refillLater);
}

QString StartupTableView::emptyText() const {
  return store().phases().empty() ? tr("Nothing built yet.\nOpen a model (Ctrl+O): the time of each phase of its build appears here.") : QString();
}

void StartupTableView::refill() {
  const auto& phases = store().phases();
  std::int64_t all = 0;
  for (const auto& p : phases) all += p.depth() == 0 ? std::max<std::int64_t>(0, p.ns()) : 0;
  std::vector<TableRow> rows;
  qint64 order = 0;
  for (const auto& p : phases) {
    TableRow row;
    const int depth = std::clamp(p.depth(), 0, 12);
    TableCell name(QString(3 * depth, QChar(0x2002)) + format::visible(p.name()), order++, format::visible(p.name()));
    if (depth > 0) name.role = QStringLiteral("muted");
    TableCell share(format::percent(static_cast<double>(p.ns()), static_cast<double>(all)), QVariant::fromValue<qint64>(p.ns()), tr("of %1, the whole build").arg(format::time(all)));
    if (depth == 0 && all > 0) share.share = static_cast<double>(p.ns()) / static_cast<double>(all);
    row.cells = {name,
                 {format::time(p.ns()), QVariant::fromValue<qint64>(p.ns()), format::timeExact(p.ns())},
                 share,
                 {p.count() > 0 ? format::count(p.count()) : QString(), QVariant::fromValue<qint64>(p.count())},
                 {p.peak_bytes() > 0 ? format::bytes(p.peak_bytes()) : QString(), QVariant::fromValue<qint64>(p.peak_bytes()), format::bytesExact(p.peak_bytes())}};
    if (p.has_pass()) {
      const auto& pass = p.pass();
      const std::int64_t change = pass.nodes_after() - pass.nodes_before();
      row.cells.push_back({format::count(pass.nodes_after()) + (change ? QStringLiteral(" (%1%2)").arg(change > 0 ? QStringLiteral("+") : QString(), format::count(change)) : QString()), QVariant::fromValue<qint64>(pass.nodes_after())});
      row.cells.push_back({format::count(pass.matches()), pass.matches()});
      QStringList misses;
      for (int i = 0; i < std::min(20, pass.near_misses_size()); ++i) misses << tr("node %1: %2").arg(pass.near_misses(i).node()).arg(format::visible(pass.near_misses(i).condition()));
      if (pass.near_misses_size() > 20) misses << tr("and %1 more").arg(pass.near_misses_size() - 20);
      row.cells.push_back({format::count(pass.near_misses_size()), pass.near_misses_size(), misses.join('\n')});
      if (pass.near_misses_size() > 0) row.target = Selection::ofNode(pass.near_misses(0).node());
      QStringList notes;
      for (const auto& note : pass.notes()) notes << format::visible(note);
      row.cells.push_back({notes.join(QStringLiteral("; ")), {}, notes.join('\n')});
    } else {
      row.cells.resize(8);
      row.cells.emplace_back();
    }
    if (!p.error().empty()) {
      const QString error = format::visible(p.error());
      row.cells.back() = TableCell(error, error, error);
      row.cells.back().role = QStringLiteral("error");
      row.cells.front().role = QStringLiteral("error");
    }
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

}  // namespace stepscope
