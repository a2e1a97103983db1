// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/ledger/ledger_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "views/common/format.h"
#include "views/common/snapshots.h"

namespace stepscope::ledger {
namespace {

std::int64_t flopsOf(const snapshot::LedgerEntry& e) {
  return e.flops_useful() + e.flops_padding() + e.flops_ignored() + e.flops_recomputed();
}
std::int64_t bytesOf(const snapshot::LedgerEntry& e) {
  return e.bytes_payload() + e.bytes_cast() + e.bytes_layout() + e.bytes_copy();
}
std::int64_t nsOf(const snapshot::LedgerEntry& e) { return e.ns_kernel() + e.ns_gap() + e.ns_waiting(); }

void add(snapshot::LedgerEntry& to, const snapshot::LedgerEntry& e) {
  to.set_flops_useful(to.flops_useful() + e.flops_useful());
  to.set_flops_padding(to.flops_padding() + e.flops_padding());
  to.set_flops_ignored(to.flops_ignored() + e.flops_ignored());
  to.set_flops_recomputed(to.flops_recomputed() + e.flops_recomputed());
  to.set_bytes_payload(to.bytes_payload() + e.bytes_payload());
  to.set_bytes_cast(to.bytes_cast() + e.bytes_cast());
  to.set_bytes_layout(to.bytes_layout() + e.bytes_layout());
  to.set_bytes_copy(to.bytes_copy() + e.bytes_copy());
  to.set_ns_kernel(to.ns_kernel() + e.ns_kernel());
  to.set_ns_gap(to.ns_gap() + e.ns_gap());
  to.set_ns_waiting(to.ns_waiting() + e.ns_waiting());
  to.set_roof_ns(to.roof_ns() + e.roof_ns());
}

// "204 FLOP", "19.7 kFLOP": the prefix belongs to the unit.
QString flops(std::int64_t n) {
  const QString text = format::countShort(static_cast<double>(n));
  return text + (text.contains(' ') ? QStringLiteral("FLOP") : QStringLiteral(" FLOP"));
}

std::string keyOf(const snapshot::LedgerEntry& e, By by) {
  switch (by) {
    case By::kModule: return e.module();
    case By::kOp: return e.op();
    case By::kPhase: return e.phase();
    case By::kSource: return e.source();
    case By::kInstruction: return std::to_string(e.instruction());
  }
  return {};
}

QString exact(std::int64_t n, const QString& unit) { return format::count(n) + unit; }

TableCell flopsCell(std::int64_t n, const QString& tip) {
  return n == 0 ? TableCell(QString(), QVariant::fromValue<qint64>(0), tip)
                : TableCell(flops(n), QVariant::fromValue<qint64>(n), tip);
}
TableCell bytesCell(std::int64_t n, const QString& tip) {
  return n == 0 ? TableCell(QString(), QVariant::fromValue<qint64>(0), tip)
                : TableCell(format::bytes(n), QVariant::fromValue<qint64>(n), tip);
}

// What a row is of; `none`: of what belongs to no module, op …
QString nameOf(const snapshot::LedgerEntry& sum, const std::string& key, By by) {
  if (by == By::kInstruction)
    return sum.instruction() < 0 ? format::visible(sum.label())
                                 : QStringLiteral("%1  %2").arg(sum.instruction()).arg(format::visible(sum.label()));
  return key.empty() ? QStringLiteral("(none)") : format::visible(key);
}

}  // namespace

QString title(By by) {
  switch (by) {
    case By::kModule: return QStringLiteral("Module");
    case By::kOp: return QStringLiteral("Op");
    case By::kPhase: return QStringLiteral("Phase");
    case By::kSource: return QStringLiteral("Source line");
    case By::kInstruction: return QStringLiteral("Instruction");
  }
  return {};
}

std::vector<TableColumn> columns(By by) {
  const auto number = [](const QString& title, const QString& tip) { return TableColumn{title, tip, true, 6}; };
  return {{title(by), QStringLiteral("What the lines of the ledger are summed by; (none): what belongs to none of them"),
           false, 16},
          number(QStringLiteral("Time"), QStringLiteral("Wall-clock time in kernels, between them, and waiting")),
          number(QStringLiteral("Share"), QStringLiteral("Percent of the time of the step")),
          number(QStringLiteral("Roof"),
                 QStringLiteral("Least time by the measured peaks of this machine: operations and bytes at full rate")),
          number(QStringLiteral("Useful"), QStringLiteral("Operations that count, a multiply-add as two")),
          number(QStringLiteral("Padding"), QStringLiteral("Operations of padded tokens")),
          number(QStringLiteral("Ignored"), QStringLiteral("Operations of rows whose label the loss ignores")),
          number(QStringLiteral("Again"), QStringLiteral("Operations that recompute what was computed before")),
          number(QStringLiteral("Payload"), QStringLiteral("Bytes that kernels read and write for what they compute")),
          number(QStringLiteral("Other bytes"), QStringLiteral("Bytes of casts, changes of layout and copies"))};
}

std::vector<TableRow> rows(const snapshot::LedgerReport& report, By by, const PlanSnapshot* plan) {
  struct Group {
    snapshot::LedgerEntry sum;
    std::vector<int> nodes;
    int first = -1;
  };
  std::map<std::string, Group> groups;
  std::int64_t all = 0;
  const bool known = plan && plan->plan().signature() == report.signature();
  for (const auto& line : report.lines()) {
    Group& group = groups[keyOf(line, by)];
    if (group.sum.label().empty()) {
      group.sum.set_label(line.label());
      group.sum.set_instruction(line.instruction());
    }
    add(group.sum, line);
    all += nsOf(line);
    const auto* in = known && line.instruction() >= 0 ? plan->instruction(line.instruction()) : nullptr;
    if (!in) continue;
    if (group.first < 0) group.first = line.instruction();
    if (in->node() >= 0) group.nodes.push_back(in->node());
  }
  std::vector<TableRow> out;
  for (auto& [key, group] : groups) {
    const snapshot::LedgerEntry& e = group.sum;
    TableRow row;
    const QString name = nameOf(e, key, by);
    TableCell what(name, by == By::kInstruction ? QVariant(e.instruction()) : QVariant(name), name);
    if (key.empty() || e.instruction() < 0) what.role = QStringLiteral("muted");
    const std::int64_t ns = nsOf(e);
    const auto time = [](std::int64_t n, const QString& tip) {
      return TableCell(format::time(n), QVariant::fromValue<qint64>(n), tip);
    };
    TableCell share(format::percent(static_cast<double>(ns), static_cast<double>(all)), QVariant::fromValue<qint64>(ns));
    share.share = all > 0 ? static_cast<double>(ns) / static_cast<double>(all) : 0;
    const double roof = std::isfinite(e.roof_ns()) ? std::clamp(e.roof_ns(), 0.0, 9e18) : 0;
    const std::int64_t other = bytesOf(e) - e.bytes_payload();
    row.cells = {what,
                 time(ns, QStringLiteral("%1 in kernels, %2 between them, %3 waiting")
                              .arg(format::timeExact(e.ns_kernel()), format::timeExact(e.ns_gap()),
                                   format::timeExact(e.ns_waiting()))),
                 share,
                 roof > 0 ? time(static_cast<std::int64_t>(roof), format::timeExact(static_cast<std::int64_t>(roof)))
                          : TableCell(QString(), 0.0),
                 flopsCell(e.flops_useful(), exact(e.flops_useful(), QStringLiteral(" operations"))),
                 flopsCell(e.flops_padding(), exact(e.flops_padding(), QStringLiteral(" operations"))),
                 flopsCell(e.flops_ignored(), exact(e.flops_ignored(), QStringLiteral(" operations"))),
                 flopsCell(e.flops_recomputed(), exact(e.flops_recomputed(), QStringLiteral(" operations"))),
                 bytesCell(e.bytes_payload(), format::bytesExact(e.bytes_payload())),
                 bytesCell(other, QStringLiteral("%1 of casts, %2 of layout, %3 of copies")
                                      .arg(format::bytesExact(e.bytes_cast()), format::bytesExact(e.bytes_layout()),
                                           format::bytesExact(e.bytes_copy())))};
    if (group.first >= 0) {
      row.target = Selection::ofInstruction(group.first);
      if (by != By::kInstruction) row.target.group = NodeGroup::make(name, group.nodes);
    }
    out.push_back(std::move(row));
  }
  std::ranges::stable_sort(
      out, [](const TableRow& a, const TableRow& b) { return a.cells[1].sort.toLongLong() > b.cells[1].sort.toLongLong(); });
  return out;
}

std::vector<Sum> sums(const snapshot::LedgerReport& report) {
  snapshot::LedgerEntry all;
  for (const auto& line : report.lines()) add(all, line);
  const std::int64_t away =
      std::min<std::int64_t>(all.ns_kernel(), withoutCore(processorOf(report), report.threads(), nsOf(all)));
  const auto part = [](const QString& name, std::int64_t n, const auto& words) {
    return Part{name, words(n), static_cast<double>(n)};
  };
  const auto time = [](std::int64_t n) { return format::time(n); };
  const auto bytes = [](std::int64_t n) { return format::bytes(n); };
  return {
      {QStringLiteral("Time"),
       time(nsOf(all)),
       format::timeExact(nsOf(all)),
       static_cast<double>(nsOf(all)),
       {part(QStringLiteral("kernels"), all.ns_kernel() - away, time), part(QStringLiteral("without a core"), away, time),
        part(QStringLiteral("gaps"), all.ns_gap(), time), part(QStringLiteral("waiting"), all.ns_waiting(), time)}},
      {QStringLiteral("Operations"),
       flops(flopsOf(all)),
       exact(flopsOf(all), QStringLiteral(" operations")),
       static_cast<double>(flopsOf(all)),
       {part(QStringLiteral("useful"), all.flops_useful(), flops),
        part(QStringLiteral("padding"), all.flops_padding(), flops),
        part(QStringLiteral("ignored labels"), all.flops_ignored(), flops),
        part(QStringLiteral("computed again"), all.flops_recomputed(), flops)}},
      {QStringLiteral("Bytes"),
       bytes(bytesOf(all)),
       format::bytesExact(bytesOf(all)),
       static_cast<double>(bytesOf(all)),
       {part(QStringLiteral("payload"), all.bytes_payload(), bytes), part(QStringLiteral("casts"), all.bytes_cast(), bytes),
        part(QStringLiteral("layout"), all.bytes_layout(), bytes),
        part(QStringLiteral("copies"), all.bytes_copy(), bytes)}}};
}

ProcessorTimes processorOf(const snapshot::LedgerReport& report) {
  return {std::max<std::int64_t>(0, report.cpu_ns()), std::max<std::int64_t>(0, report.wait_ns()), report.wall_ns()};
}

QString warning(const snapshot::LedgerReport& report) {
  QStringList said;
  if (const std::string busy = busyText(processorOf(report)); !busy.empty())
    said << QStringLiteral("The machine was busy: %1. The lines hold it: measure again before judging a kernel by them.")
                .arg(QString::fromStdString(busy));
  if (const std::string roofs = disturbedText(report.roof_waiting()); !roofs.empty())
    said << QStringLiteral("The roofs were %1: a roof may be above the least time.").arg(QString::fromStdString(roofs));
  return said.join(' ');
}

std::vector<TableColumn> adviceColumns() {
  return {{QStringLiteral("Gain at most"),
           QStringLiteral("Time of the step that would be saved if all of it went away: predicted, a trial measures it"),
           true, 7},
          {QStringLiteral("Of the step"), QStringLiteral("Percent of the time of the step"), true, 6},
          {QStringLiteral("Spent on"), QStringLiteral("Line of the sums above"), false, 8},
          {QStringLiteral("What would shrink it"), QStringLiteral("An option, or a change of the batch or the model"), false,
           22},
          {QStringLiteral("Option"), QStringLiteral("As --set takes it; empty: no option does it"), false, 13}};
}

std::vector<TableRow> adviceRows(const snapshot::LedgerReport& report) {
  std::vector<TableRow> out;
  for (int i = 0; i < report.advice_size(); ++i) {
    const auto& a = report.advice(i);
    const double gain = std::isfinite(a.gain_ns()) ? std::clamp(a.gain_ns(), 0.0, 9e18) : 0;
    TableRow row;
    row.key = i;
    row.cells = {{format::time(static_cast<std::int64_t>(gain)), gain, format::timeExact(static_cast<std::int64_t>(gain))},
                 {format::percent(gain, static_cast<double>(report.ns())), gain},
                 format::visible(a.spent()),
                 format::visible(a.change()),
                 a.option().empty()
                     ? QString()
                     : QStringLiteral("%1 = %2").arg(format::visible(a.option()), format::visible(a.value()))};
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace stepscope::ledger
