// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/comparison_cells.h"

#include <QFileInfo>
#include <QObject>
#include <cmath>

#include "views/common/format.h"

namespace stepscope::comparison {
namespace {

constexpr double kWorthColour = 0.05;  // a change below is noise as often as not

// Less is better for times and bytes: the sign tells, the colour repeats it.
void colour(TableCell& cell, double a, double b) {
  if (a > 0 && std::abs(b - a) >= kWorthColour * a) cell.role = b < a ? QStringLiteral("ok") : QStringLiteral("warn");
}

}  // namespace

QVariant sortKey(std::optional<double> x) { return x && !std::isnan(*x) ? QVariant(*x) : QVariant(-1e300); }

TableCell plain(const QString& text) { return {format::visible(text), {}, format::visible(text)}; }

TableCell absent() {
  TableCell cell(QStringLiteral("–"), QVariant(-1e300), QStringLiteral("not recorded in this run"));
  cell.role = QStringLiteral("faint");
  return cell;
}

TableCell number(std::optional<double> x) {
  return x ? TableCell(format::number(*x, 7), sortKey(x), format::numberExact(*x)) : absent();
}

TableCell time(std::optional<double> ns) {
  if (!ns) return absent();
  const auto n = static_cast<std::int64_t>(*ns);
  return {format::time(n), QVariant(*ns), format::timeExact(n)};
}

TableCell bytes(std::optional<std::int64_t> n) {
  return n ? TableCell(format::bytes(*n), QVariant::fromValue<qint64>(*n), format::bytesExact(*n)) : absent();
}

TableCell timeDifference(std::optional<double> a, std::optional<double> b, bool judged) {
  if (!a && !b) return absent();
  const auto ns = static_cast<std::int64_t>(b.value_or(0) - a.value_or(0));
  TableCell cell(format::timeDifference(ns), QVariant(std::abs(static_cast<double>(ns))), format::timeExact(ns));
  if (a && b && judged) colour(cell, *a, *b);
  return cell;
}

TableCell bytesDifference(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  if (!a || !b) return {};
  TableCell cell(format::bytesDifference(*b - *a), QVariant::fromValue<qint64>(std::abs(*b - *a)),
                 format::bytesExact(*b - *a));
  colour(cell, static_cast<double>(*a), static_cast<double>(*b));
  return cell;
}

TableCell change(std::optional<double> a, std::optional<double> b, bool judged) {
  if (!a || !b || *a == 0) return {};
  TableCell cell(format::change(*a, *b), QVariant((*b - *a) / *a), QStringLiteral("of A"));
  if (judged) colour(cell, *a, *b);
  return cell;
}

QString timesNote(const PairTimes& times) {
  QStringList parts;
  if (const QString unlike = times.unlike(); !unlike.isEmpty())
    parts << QStringLiteral("The steps did not run in the same way (%1), so their times say little about the settings.")
                 .arg(format::visible(unlike));
  for (const auto& [letter, run] : {std::pair('A', &times.a), std::pair('B', &times.b)})
    if (run->busy)
      parts << QStringLiteral(
                   "Run %1 ran on a busy machine: it waited for %2 % of the processor time it asked for, so its times are "
                   "longer.")
                   .arg(QChar(letter))
                   .arg(qRound(100 * run->waitShare));
  return parts.join(' ');
}

QString noneText(const ProjectFacts& facts) {
  if (facts.runComparison()) return {};
  if (facts.comparing()) return QStringLiteral("Reading two runs …");
  if (!facts.compareError().isEmpty()) return QStringLiteral("The runs cannot be compared.\n%1").arg(facts.compareError());
  const auto runs = facts.runs().size() + facts.otherRuns().size();
  if (runs >= 2) return QStringLiteral("Choose run A and run B above, or in Runs with the menu of a row.");
  if (facts.projectPath().isEmpty())
    return QStringLiteral(
        "No runs to compare.\nOpen a model (Ctrl+O) and train it: every build records a run. Or open a project (.stepscope) "
        "with two runs.");
  return runs == 1
             ? QStringLiteral(
                   "One run so far; a comparison takes two.\nMenu Run, New run from step 0 begins the second with the same "
                   "options, data and seed: change what is compared, and train. Or take a run of another project: menu "
                   "Tools, "
                   "Compare with another project.")
             : QStringLiteral("No runs to compare.\nBuild a model and train it: every build records a run.");
}

QString oneRunText(const ProjectFacts& facts) {
  const auto& compared = facts.runComparison();
  if (!compared || compared->request.a != compared->request.b) return {};
  const QString& other = compared->request.otherProject;
  if (!other.isEmpty() && QFileInfo(other) != QFileInfo(facts.projectPath())) return {};
  return QStringLiteral("A and B are the same run, %1: choose another one in A or B.").arg(compared->request.a);
}

QString divergenceText(const Divergence& d) {
  // As many digits as it takes to see that they differ.
  int digits = 7;
  while (digits < 17 && d.a && d.b && *d.a != *d.b && format::number(*d.a, digits) == format::number(*d.b, digits)) ++digits;
  const auto shown = [digits](std::optional<double> x) { return x ? format::number(*x, digits) : QStringLiteral("none"); };
  const QString of = d.value.isEmpty() ? QString() : QStringLiteral(" of %1").arg(format::visible(d.value));
  return QStringLiteral("step %1, %2%3: %4 and %5")
      .arg(format::count(d.step), format::visible(d.quantity), of, shown(d.a), shown(d.b));
}

QString toleranceText(const CompareRequest& request) {
  return QStringLiteral("rtol %1, atol %2").arg(format::number(request.rtol, 2), format::number(request.atol, 2));
}

}  // namespace stepscope::comparison
