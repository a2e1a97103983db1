// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_rows.h"

#include <QDateTime>
#include <QLocale>
#include <QObject>
#include <algorithm>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

TableRow summary(const QString& what, TableCell a, TableCell b, TableCell difference = {}) {
  TableRow row;
  TableCell name(what);
  name.role = QStringLiteral("muted");
  row.cells = {name, std::move(a), std::move(b), std::move(difference)};
  return row;
}

TableRow textSummary(const QString& what, const QString& a, const QString& b) {
  TableCell difference(a == b ? QString() : QStringLiteral("differs"));
  difference.role = QStringLiteral("accent");
  return summary(what, comparison::plain(a), comparison::plain(b), difference);
}

std::optional<double> median(const TimeFigures& t) {
  return t.n > 0 ? std::optional(static_cast<double>(t.median)) : std::nullopt;
}
std::optional<double> p95(const TimeFigures& t) {
  return t.n > 0 ? std::optional(static_cast<double>(t.p95)) : std::nullopt;
}
QDateTime started(const RunEntry& run) { return QDateTime::fromMSecsSinceEpoch(run.startedAt / 1'000'000); }

}  // namespace

std::vector<QString> runTitles(const std::vector<RunEntry>& runs) {
  const auto same = [&runs](auto member) {
    return std::ranges::all_of(runs, [&](const RunEntry& run) { return run.*member == runs.front().*member; });
  };
  const bool oneName = same(&RunEntry::name), oneOptimizer = same(&RunEntry::optimizer);
  const std::vector<QString> differ = differences(runs);
  std::vector<QString> titles;
  for (const RunEntry& run : runs) {
    QStringList apart, alike;
    (oneName ? alike : apart) << format::visible(run.name);
    if (const QString& own = differ[titles.size()]; !own.isEmpty()) apart << format::visible(own);
    apart << (run.steps == 1 ? QStringLiteral("1 step") : QStringLiteral("%1 steps").arg(format::count(run.steps)))
          << QLocale().toString(started(run), QStringLiteral("d MMM hh:mm"));
    if (!run.optimizer.isEmpty()) (oneOptimizer ? alike : apart) << format::visible(run.optimizer);
    titles.push_back(QStringLiteral("%1  %2").arg(run.id).arg((apart + alike).join(QStringLiteral(" · "))));
  }
  return titles;
}

std::vector<TableRow> summaryRows(const RunComparison& c, const PairTimes& times) {
  const auto& a = c.a;
  const auto& b = c.b;
  std::vector<TableRow> rows;
  const auto loss = [](const RunEntry& run, double value) { return run.hasLoss ? std::optional(value) : std::nullopt; };
  const auto numbers = [&](const QString& what, std::optional<double> x, std::optional<double> y) {
    rows.push_back(
        summary(what, comparison::number(x), comparison::number(y),
                x && y ? TableCell(*x == *y ? QStringLiteral("0")
                                            : (*y > *x ? QStringLiteral("+") : QString()) + format::number(*y - *x, 4),
                                   {}, format::numberExact(*y - *x))
                       : TableCell()));
  };
  const auto time = [&](const QString& what, std::optional<double> x, std::optional<double> y) {
    TableCell difference = x && y ? comparison::timeDifference(x, y, times.comparable()) : TableCell();
    if (x && y) difference.tip += QStringLiteral("\n%1 of A").arg(format::change(*x, *y));
    rows.push_back(summary(what, comparison::time(x), comparison::time(y), difference));
  };
  // Exported models are often all called model.onnx: their folder tells them apart.
  const auto model = [](const QString& path) {
    const QString file = path.section('/', -1), folder = path.section('/', -2, -2);
    return file == u"model.onnx" && !folder.isEmpty() ? folder : file;
  };
  rows.push_back(textSummary(QStringLiteral("Model"), model(a.model), model(b.model)));
  rows.back().cells[1].tip = format::visible(a.model);
  rows.back().cells[2].tip = format::visible(b.model);
  // The day matters when it is another one.
  const QString clock =
      started(a.run).date() == started(b.run).date() ? QStringLiteral("hh:mm:ss") : QStringLiteral("d MMM hh:mm");
  const auto when = [&clock](const RunEntry& run) {
    return TableCell(QLocale().toString(started(run), clock), {}, QLocale().toString(started(run), QLocale::LongFormat));
  };
  rows.push_back(summary(QStringLiteral("Started"), when(a.run), when(b.run)));
  rows.push_back(textSummary(QStringLiteral("State"), a.run.status, b.run.status));
  rows.push_back(textSummary(QStringLiteral("Device"), a.run.device + QStringLiteral(" · ") + a.precision,
                             b.run.device + QStringLiteral(" · ") + b.precision));
  rows.push_back(textSummary(QStringLiteral("Optimizer"), a.run.optimizer, b.run.optimizer));
  if (a.cpu != b.cpu) rows.push_back(textSummary(QStringLiteral("Machine"), a.cpu, b.cpu));
  if (a.version != b.version) rows.push_back(textSummary(QStringLiteral("Version"), a.version, b.version));
  const std::int64_t more = b.run.steps - a.run.steps;
  rows.push_back(
      summary(QStringLiteral("Steps"), {stepsText(a.run)}, {stepsText(b.run)},
              {more == 0 ? QStringLiteral("0") : (more > 0 ? QStringLiteral("+") : QString()) + format::count(more)}));
  rows.back().cells[0].tip = QStringLiteral("Recorded micro steps, without those that a rewind took back");
  rows.back().cells[1].tip = otherStepsText(a.run);
  rows.back().cells[2].tip = otherStepsText(b.run);
  time(QStringLiteral("Step, median"), median(a.step), median(b.step));
  rows.back().cells[1].tip = rows.back().cells[2].tip = {};
  for (const auto& [cell, t] : {std::pair(1, a.step), std::pair(2, b.step)}) {
    if (t.n > 0)
      rows.back().cells[static_cast<std::size_t>(cell)].tip =
          QStringLiteral("n %1 without warm-up and stops, min %2, max %3")
              .arg(format::count(t.n), format::time(t.min), format::time(t.max));
  }
  time(QStringLiteral("Step, p95"), p95(a.step), p95(b.step));
  if (!times.a.speed.isEmpty() || !times.b.speed.isEmpty()) {
    rows.push_back(textSummary(QStringLiteral("Steps ran"), times.a.speed, times.b.speed));
    rows.back().cells[0].tip = QStringLiteral(
        "full speed; recorded, with the begin and end of every instruction; watched, recorded and every value looked at for "
        "NaN and Inf (Run with Break on); walked, instruction by instruction to stop at breakpoints");
    if (!times.unlike().isEmpty()) rows.back().cells[3].role = QStringLiteral("warn");
  }
  if (times.a.measured || times.b.measured) {
    const auto cells = [&](const QString& what, auto&& text, bool warns) {
      TableRow row = summary(what, comparison::absent(), comparison::absent());
      for (const auto& [cell, t] : {std::pair(1, &times.a), std::pair(2, &times.b)}) {
        if (!t->measured) continue;
        row.cells[static_cast<std::size_t>(cell)] = TableCell(text(*t));
        if (warns && t->busy) row.cells[static_cast<std::size_t>(cell)].role = QStringLiteral("warn");
      }
      rows.push_back(std::move(row));
    };
    cells(
        QStringLiteral("Processors"), [](const RunStepTimes& t) { return QString::number(t.processors, 'f', 1); }, false);
    rows.back().cells[0].tip = QStringLiteral("Processor time divided by the wall time of the steps");
    cells(
        QStringLiteral("Waited"),
        [](const RunStepTimes& t) { return QStringLiteral("%1 %").arg(100 * t.waitShare, 0, 'f', 1); }, true);
    rows.back().cells[0].tip = QStringLiteral(
        "Of the processor time that was asked for, what the threads waited for a core because something else ran; from 10 % "
        "on the machine counts as busy");
    if (times.a.busy || times.b.busy) {
      rows.back().cells[3] = TableCell(QStringLiteral("busy"));
      rows.back().cells[3].role = QStringLiteral("warn");
    }
  }
  numbers(QStringLiteral("First loss"), loss(a.run, a.run.firstLoss), loss(b.run, b.run.firstLoss));
  numbers(QStringLiteral("Last loss"), loss(a.run, a.run.lastLoss), loss(b.run, b.run.lastLoss));
  for (const ComparedBytes& m : c.memory) {
    if (m.name == u"measured peak" || m.name == u"planned")
      rows.push_back(summary(m.name == u"planned" ? QStringLiteral("Peak, planned") : QStringLiteral("Peak, measured"),
                             comparison::bytes(m.a), comparison::bytes(m.b), comparison::bytesDifference(m.a, m.b)));
  }
  return rows;
}

}  // namespace stepscope
