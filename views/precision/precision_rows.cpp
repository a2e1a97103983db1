// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/precision/precision_rows.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "views/common/format.h"

namespace stepscope::precision {
namespace {

TableColumn text(const QString& title, const QString& tip, int width) { return {title, tip, false, width}; }
TableColumn number(const QString& title, const QString& tip) { return {title, tip, true, 6}; }

std::int64_t whole(double x) { return std::isfinite(x) ? static_cast<std::int64_t>(std::clamp(x, -9e18, 9e18)) : 0; }

// An error as a share; infinite ones first when it is sorted.
TableCell errorCell(double error, const QString& tip = {}) {
  TableCell cell(std::isinf(error)   ? QStringLiteral("not finite")
                 : std::isnan(error) ? QStringLiteral("NaN")
                                     : format::number(error, 3),
                 std::isnan(error) ? 1e301 : std::min(error, 1e300), tip);
  if (!std::isfinite(error)) cell.role = QStringLiteral("error");
  return cell;
}

TableCell shareCell(std::int64_t part, std::int64_t all, const QString& of, const char* role) {
  const double share = all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
  TableCell cell(part == 0        ? QStringLiteral("0")
                 : share < 0.0005 ? QStringLiteral("< 0.1 %")
                                  : format::number(100 * share, 2) + QStringLiteral(" %"),
                 share, QStringLiteral("%1 of %2 %3").arg(format::count(part), format::count(all), of));
  cell.role = part == 0 ? QStringLiteral("faint") : QString::fromLatin1(role);
  return cell;
}

// Least, median and largest exponent, and what the bars are.
QString exponentTip(const snapshot::PrecisionClass& c) {
  std::int64_t all = 0, below = 0;
  for (const std::int64_t count : c.counts()) all += count;
  int least = -1, middle = 0, most = 0;
  for (int i = 0; i < c.counts_size(); ++i) {
    if (c.counts(i) <= 0) continue;
    if (least < 0) least = i;
    if (2 * below < all) middle = i;
    below += c.counts(i);
    most = i;
  }
  if (least < 0) return QStringLiteral("No element is a finite number other than 0");
  const auto power = [&](int i) { return QStringLiteral("2^%1").arg(c.first_exponent() + i); };
  return QStringLiteral(
             "%1 to %2, half of them below %3\nBars: this step; line: float32; dashed: where normal numbers of %4 end")
      .arg(power(least), power(most), power(middle + 1), format::visible(c.dtype()));
}

}  // namespace

std::vector<TableColumn> classColumns(int first, int last) {
  const QString axis =
      first < last ? QStringLiteral("Exponents, 2^%1 to 2^%2").arg(first).arg(last) : QStringLiteral("Exponents");
  return {text(QStringLiteral("Tensors"), QStringLiteral("Class of the tensors; those that one step makes"), 8),
          text(QStringLiteral("Type"), QStringLiteral("Type of their elements"), 6),
          text(axis,
               QStringLiteral(
                   "How many elements have which power of two. Bars: this step; line: the same elements in float32; dashed: "
                   "where the normal numbers of the type end. What lies beyond is amber"),
               18),
          number(QStringLiteral("Flushed"),
                 QStringLiteral("Elements that are zero here and not zero in float32, of those compared")),
          number(QStringLiteral("Subnormal"),
                 QStringLiteral("Elements below the smallest normal number of the type: they have fewer digits")),
          number(QStringLiteral("Near overflow"),
                 QStringLiteral("Finite elements of at least half of the type's largest number")),
          number(QStringLiteral("NaN, Inf"), QStringLiteral("Elements that are not finite")),
          number(QStringLiteral("Elements"), QStringLiteral("Elements of all these tensors"))};
}

std::vector<TableColumn> nodeColumns() {
  return {
      text(QStringLiteral("Node"), QStringLiteral("A node that computes in low precision; its gradient counts with it"), 14),
      text(QStringLiteral("Op"), QStringLiteral("Operator"), 8),
      number(QStringLiteral("Adds"),
             QStringLiteral(
                 "Error of what it makes beyond the error of what it reads: L2 norm of the difference to float32, as a "
                 "share of float32's norm")),
      number(QStringLiteral("With override"),
             QStringLiteral(
                 "Error of all gradients together when the step runs with the override; measured for the nodes that add "
                 "most")),
      text(QStringLiteral("Override"), QStringLiteral("Setting of option precision.force: this node in float32"), 14)};
}

std::vector<TableColumn> gradientColumns() {
  return {
      text(QStringLiteral("Parameter"), QStringLiteral("Trained parameter"), 16),
      number(QStringLiteral("Error"),
             QStringLiteral("L2 norm of the difference of both gradients, as a share of float32's")),
      number(QStringLiteral("Cosine"), QStringLiteral("Cosine of the angle between both gradients; 1: the same direction")),
      number(QStringLiteral("Largest"), QStringLiteral("Largest difference of two elements")),
      number(QStringLiteral("Relative"),
             QStringLiteral("Largest difference as a share of the larger of the two elements: 0 to 2")),
      number(QStringLiteral("Norm"), QStringLiteral("L2 norm of the gradient in float32")),
      number(QStringLiteral("Update"),
             QStringLiteral("The same error of what the update adds to the parameter; 1 where it is skipped"))};
}

std::vector<TableRow> classRows(const snapshot::PrecisionReport& report) {
  std::vector<TableRow> rows;
  for (int i = 0; i < report.classes_size(); ++i) {
    const auto& c = report.classes(i);
    TableRow row;
    row.key = i;
    TableCell wrong(format::count(c.not_finite()), static_cast<qlonglong>(c.not_finite()));
    wrong.role = c.not_finite() > 0 ? QStringLiteral("error") : QStringLiteral("faint");
    TableCell type(format::visible(c.dtype()));
    type.role = QStringLiteral("muted");
    row.cells = {TableCell(format::visible(c.tensors()), {}, QStringLiteral("%1 tensors").arg(format::count(c.values()))),
                 type,
                 TableCell(QString(), c.first_exponent(), exponentTip(c)),
                 shareCell(c.flushed(), c.compared(), QStringLiteral("elements that were compared"), "warn"),
                 shareCell(c.subnormal(), c.elements(), QStringLiteral("elements"), "warn"),
                 shareCell(c.near_overflow(), c.elements(), QStringLiteral("elements"), "warn"),
                 wrong,
                 TableCell(format::count(c.elements()), static_cast<qlonglong>(c.elements()))};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TableRow> nodeRows(const snapshot::PrecisionReport& report, const GraphSnapshot* graph) {
  std::unordered_map<std::string, int> byName;
  if (graph != nullptr)
    for (const auto& node : graph->graph().nodes()) byName.emplace(node.name(), node.id());
  std::vector<TableRow> rows;
  for (int i = 0; i < report.nodes_size(); ++i) {
    const auto& n = report.nodes(i);
    TableRow row;
    row.key = i;
    if (const auto it = byName.find(n.node()); it != byName.end()) row.target = Selection::ofNode(it->second);
    const QString name = format::visible(n.node());
    TableCell adds = errorCell(n.added());
    if (n.not_finite() > 0) {
      adds.text = QStringLiteral("overflows");
      adds.tip =
          QStringLiteral("It makes %1 elements that are not finite of finite ones").arg(format::count(n.not_finite()));
    }
    TableCell with(QStringLiteral("–"), 1e302, QStringLiteral("Not measured"));
    with.role = QStringLiteral("faint");
    if (n.measured()) {
      with = errorCell(n.error_with_override(),
                       QStringLiteral("Error of all gradients %1 without it, %2 with it; of the loss %3 and %4")
                           .arg(format::number(report.error(), 3), format::number(n.error_with_override(), 3),
                                format::number(report.loss_error(), 3), format::number(n.loss_error_with_override(), 3)));
      const bool helps = n.not_finite_with_override() < report.not_finite() || n.error_with_override() < report.error();
      if (with.role.isEmpty()) with.role = helps ? QStringLiteral("ok") : QStringLiteral("muted");
    }
    TableCell setting(format::visible(n.override()));
    setting.role = QStringLiteral("mono");
    row.cells = {TableCell(name, name, n.module().empty() ? name : name + '\n' + format::visible(n.module())),
                 format::visible(n.op()), adds, with, setting};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TableRow> gradientRows(const snapshot::PrecisionReport& report, const GraphSnapshot* graph) {
  std::unordered_map<std::string, int> byName;
  if (graph != nullptr)
    for (const auto& value : graph->graph().values()) byName.emplace(value.name(), value.id());
  std::vector<TableRow> rows;
  for (int i = 0; i < report.gradients_size(); ++i) {
    const auto& g = report.gradients(i);
    TableRow row;
    row.key = i;
    if (const auto it = byName.find(g.name()); it != byName.end()) row.target = Selection::ofValue(it->second);
    TableCell cosine(format::number(g.cosine(), 6), std::isnan(g.cosine()) ? -2.0 : g.cosine());
    if (!(g.cosine() >= 0.99)) cosine.role = QStringLiteral("warn");
    const QString none =
        g.zero() ? QStringLiteral(
                       "Zero up to rounding: in float32 its norm, %1, is what rounding leaves of terms that cancel "
                       "(%2), so a share of it is noise beside noise. A bias of attention's keys is such a one")
                       .arg(format::number(g.norm(), 3), format::number(g.terms(), 3))
                 : QString();
    row.cells = {TableCell(format::visible(g.name()), {}, QStringLiteral("%1 elements").arg(format::count(g.elements()))),
                 errorCell(g.error(), g.not_finite() > 0
                                          ? QStringLiteral("%1 elements are not finite").arg(format::count(g.not_finite()))
                                          : QString()),
                 cosine,
                 errorCell(g.max_abs()),
                 errorCell(g.max_rel()),
                 TableCell(format::number(g.norm(), 3), g.norm()),
                 errorCell(g.update_error())};
    if (g.zero()) {
      row.cells[1] = TableCell(QStringLiteral("zero up to rounding"), -1.0, none);
      for (const std::size_t share : {2u, 4u, 6u}) row.cells[share] = TableCell(QStringLiteral("–"), -1.0, none);
      for (TableCell& cell : row.cells) cell.role = QStringLiteral("faint");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

QString summary(const snapshot::PrecisionReport& report, QString* role) {
  const auto& cost = report.cost();
  *role = report.not_finite() > 0 ? QStringLiteral("error") : QString();
  const QString errors = report.not_finite() > 0
                             ? QStringLiteral("%1 elements of gradients are not finite%2")
                                   .arg(format::count(report.not_finite()),
                                        report.skipped() ? QStringLiteral("; the update is skipped") : QString())
                             : QStringLiteral("loss off by %1, gradients by %2, updates by %3")
                                   .arg(format::number(report.loss_error(), 3), format::number(report.error(), 3),
                                        format::number(report.update_error(), 3));
  const double bytesBefore = static_cast<double>(cost.bytes_before()), bytesAfter = static_cast<double>(cost.bytes_after());
  return QStringLiteral(
             "%1 against fp32, step %2%3: %4.\nArena %5 → %6 (%7), traffic %8 → %9, step %10 → %11 (%12; medians of %13, in "
             "turns)")
      .arg(format::visible(report.precision()))
      .arg(report.step())
      .arg(report.loss_scale() == 1 ? QString()
                                    : QStringLiteral(", loss scale %1").arg(format::number(report.loss_scale(), 6)))
      .arg(errors)
      .arg(format::bytes(cost.bytes_before()), format::bytes(cost.bytes_after()), format::change(bytesBefore, bytesAfter),
           format::bytes(cost.traffic_before()), format::bytes(cost.traffic_after()), format::time(whole(cost.ns_before())),
           format::time(whole(cost.ns_after())), format::change(cost.ns_before(), cost.ns_after()))
      .arg(cost.steps());
}

}  // namespace stepscope::precision
