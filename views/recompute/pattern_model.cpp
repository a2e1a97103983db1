// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/recompute/pattern_model.h"

#include <algorithm>
#include <cmath>

#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 62;

std::vector<TableColumn> patternColumns() {
  const auto text = [](const QString& title, const QString& tip, int width) {
    return TableColumn{title, tip, false, width};
  };
  const auto number = [](const QString& title, const QString& tip) { return TableColumn{title, tip, true, 6}; };
  return {text(QStringLiteral("Pattern"),
               QStringLiteral("Operators that run again, in order; “block” is a whole module that the model repeats. "
                              "Ticked: in the plan below"),
               12),
          text(QStringLiteral("Chosen"),
               QStringLiteral(
                   "How many of its occurrences the plan below takes, from the front of the model, of how many there are. "
                   "Behind it what runs again besides: the budget chose it"),
               9),
          number(QStringLiteral("Saves"),
                 QStringLiteral("By how much the arena of the plan shrinks when all its occurrences run again and nothing "
                                "else does: the planner's answer, workspaces included, not a sum. The tooltip of a cell "
                                "has the peak of values too, which a budget limits")),
          number(QStringLiteral("Costs"), QStringLiteral("Time of running all its occurrences once more")),
          number(QStringLiteral("Ratio"), QStringLiteral("Bytes saved per time that it costs: the more, the better")),
          number(QStringLiteral("Kept"), QStringLiteral("Bytes of what all its occurrences keep today, a plain sum")),
          text(QStringLiteral("Shapes"),
               QStringLiteral("Type and extents of what is kept for the backward phase today, most frequent first"), 12)};
}

TableCell ratioCell(const snapshot::RecomputePattern& p) {
  if (p.saved_arena_bytes() <= 0) {
    TableCell cell(QStringLiteral("–"), -1.0,
                   QStringLiteral("Nothing is saved: the peak lies elsewhere, or does not fall by this alone"));
    cell.role = QStringLiteral("faint");
    return cell;
  }
  if (!(p.cost_ns() > 0)) return {QStringLiteral("∞"), 1e300, QStringLiteral("It costs no time that can be measured")};
  const double perMs = static_cast<double>(p.saved_arena_bytes()) / p.cost_ns() * 1e6;
  const double shown = std::isfinite(perMs) ? std::min(perMs, 9e18) : 0;
  return {QStringLiteral("%1/ms").arg(format::bytes(static_cast<std::int64_t>(shown))), shown};
}

std::int64_t whole(double x) { return std::isfinite(x) ? static_cast<std::int64_t>(std::clamp(x, -9e18, 9e18)) : 0; }

}  // namespace

PatternModel::PatternModel(QObject* parent) : RowTableModel(patternColumns(), parent) {}

void PatternModel::setReport(const std::shared_ptr<const snapshot::RecomputeReport>& report) {
  report_ = report;
  std::vector<TableRow> rows;
  double most = 0;
  if (report)
    for (const auto& p : report->patterns()) most = std::max(most, static_cast<double>(p.saved_arena_bytes()));
  for (int i = 0; report && i < report->patterns_size(); ++i) {
    const auto& p = report->patterns(i);
    TableRow row;
    row.key = i;
    std::vector<int> makers;
    for (const int node : p.makers())
      if (node >= 0) makers.push_back(node);
    if (!makers.empty()) {
      row.target = Selection::ofNode(makers.front());
      row.target.group = NodeGroup::make(QString::fromStdString(p.pattern()), std::move(makers));
    }
    QStringList shapes;
    for (const std::string& shape : p.shapes()) shapes << format::visible(shape);
    const QString name = format::visible(p.pattern());
    TableCell pattern(
        name, name,
        p.applied() > 0
            ? QStringLiteral("%1\n%2 of %3 run again in the plan that runs").arg(name).arg(p.applied()).arg(p.occurrences())
            : name);
    TableCell shapesCell(shapes.join(QStringLiteral(", ")), {}, shapes.join('\n'));
    shapesCell.role = QStringLiteral("muted");
    const std::int64_t less = std::clamp(p.saved_arena_bytes(), -kMost, kMost);
    const std::int64_t values = std::clamp(p.saved_bytes(), -kMost, kMost);
    const QString ofValues = values < 0 ? QStringLiteral("the peak of values rises by %1").arg(format::bytesExact(-values))
                                        : QStringLiteral("the peak of values falls by %1").arg(format::bytesExact(values));
    TableCell saved(format::bytes(less), static_cast<qlonglong>(less),
                    QStringLiteral("The arena shrinks by %1; %2").arg(format::bytesExact(less), ofValues));
    if (less > 0 && most > 0) saved.share = static_cast<double>(less) / most;
    if (less < 0) {
      saved.text = QStringLiteral("−") + format::bytes(-less);
      saved.tip = QStringLiteral("The arena grows by %1: what runs again needs memory where there was least; %2")
                      .arg(format::bytesExact(-less), ofValues);
    }
    if (less <= 0) saved.role = less < 0 ? QStringLiteral("warn") : QStringLiteral("faint");
    const bool measured = p.measured_nodes() > 0;
    const bool warm = measured && !report->cold();
    TableCell cost(
        (measured ? QString() : QStringLiteral("≥ ")) + format::time(whole(p.cost_ns())), p.cost_ns(),
        measured
            ? QStringLiteral("%1 for %2 nodes, measured: %3")
                  .arg(format::timeExact(whole(p.cost_ns())), format::count(p.nodes()), format::visible(report->basis()))
            : QStringLiteral("%1 for %2 nodes, the least that this machine can take: %3")
                  .arg(format::timeExact(whole(p.cost_ns())), format::count(p.nodes()), format::visible(report->basis())));
    if (!warm) cost.role = QStringLiteral("old");
    const TableCell kept(format::bytes(p.stash_bytes()), static_cast<qlonglong>(p.stash_bytes()),
                         format::bytesExact(p.stash_bytes()));
    row.cells = {pattern, {QString(), p.occurrences()}, saved, cost, ratioCell(p), kept, shapesCell};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

void PatternModel::setChosen(const std::map<QString, qint64>& chosen, bool budget) {
  if (chosen == chosen_ && budget == budget_) return;
  chosen_ = chosen;
  budget_ = budget;
  if (rowCount() > 0) emit dataChanged(index(0, kPattern), index(rowCount() - 1, kCount));
}

void PatternModel::setReadOnly(bool readOnly) { readOnly_ = readOnly; }

QString PatternModel::pattern(int row) const {
  return report_ && row >= 0 && row < report_->patterns_size() ? QString::fromStdString(report_->patterns(row).pattern())
                                                               : QString();
}

qint64 PatternModel::chosenOf(int row) const {
  const auto it = chosen_.find(pattern(row));
  if (it == chosen_.end()) return 0;
  const qint64 all = report_->patterns(row).occurrences();
  return it->second == -1 ? all : std::clamp<qint64>(it->second, 0, std::max<qint64>(0, all));
}

QString PatternModel::countText(int row) const {
  const qint64 chosen = chosenOf(row), besides = report_->patterns(row).applied() - chosen;
  const QString text =
      QStringLiteral("%1 of %2").arg(format::count(chosen), format::count(report_->patterns(row).occurrences()));
  return budget_ && besides > 0 ? text + QStringLiteral(" + %1 by budget").arg(format::count(besides)) : text;
}

QVariant PatternModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !report_ || index.row() >= report_->patterns_size()) return RowTableModel::data(index, role);
  if (index.column() == kPattern && role == Qt::CheckStateRole) {
    const qint64 chosen = chosenOf(index.row());
    return chosen == 0                                              ? Qt::Unchecked
           : chosen == report_->patterns(index.row()).occurrences() ? Qt::Checked
                                                                    : Qt::PartiallyChecked;
  }
  if (index.column() == kCount && role == Qt::DisplayRole) return countText(index.row());
  return RowTableModel::data(index, role);
}

bool PatternModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || index.column() != kPattern || role != Qt::CheckStateRole || readOnly_) return false;
  emit ticked(pattern(index.row()), value.toInt() != Qt::Unchecked);
  return true;
}

Qt::ItemFlags PatternModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags plain = RowTableModel::flags(index);
  return index.isValid() && index.column() == kPattern && !readOnly_ ? plain | Qt::ItemIsUserCheckable : plain;
}

}  // namespace stepscope
