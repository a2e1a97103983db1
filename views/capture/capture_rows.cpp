// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/capture/capture_rows.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "views/common/format.h"

namespace stepscope::capture {
namespace {

// Random numbers have no tensor of PyTorch's beside them: the row says how the comparison did without.
bool compared(const snapshot::GoldenTensor& t) { return t.kind() != "draws"; }

int rank(const snapshot::GoldenTensor& t) {
  return t.verdict() == "differs" ? 0 : t.verdict() == "skipped" || !compared(t) ? 2 : 1;
}

TableCell numberCell(const snapshot::GoldenTensor& t, double value) {
  if (t.index().empty() && std::isnan(t.cosine())) {
    TableCell none(QStringLiteral("–"), 1e302, QStringLiteral("There are no elements to compare"));
    none.role = QStringLiteral("faint");
    return none;
  }
  return {format::number(value, 3), std::isnan(value) ? 1e301 : std::min(value, 1e300), format::numberExact(value)};
}

QString place(const snapshot::GoldenTensor& t) {
  QStringList at;
  for (const auto i : t.index()) at << QString::number(i);
  return QStringLiteral("[%1]: %2 here, %3 in PyTorch")
      .arg(at.join(QStringLiteral(", ")), format::numberExact(t.found()), format::numberExact(t.expected()));
}

}  // namespace

std::vector<TableColumn> columns() {
  const auto text = [](const QString& title, const QString& tip, int width) {
    return TableColumn{title, tip, false, width};
  };
  const auto number = [](const QString& title, const QString& tip) { return TableColumn{title, tip, true, 6}; };
  return {
      text(QStringLiteral("Verdict"),
           QStringLiteral("Whether the largest difference lies within the tolerance; skipped: the options leave it out; "
                          "left out: random numbers, which "
                          "both do without"),
           6),
      text(QStringLiteral("What"), QStringLiteral("Loss, gradient, running statistic, output of a module"), 7),
      text(QStringLiteral("Name"), QStringLiteral("Parameter, buffer or module"), 14),
      text(QStringLiteral("Shape"), QStringLiteral("Extents"), 7),
      number(QStringLiteral("Off by"), QStringLiteral("Largest difference of an element")),
      number(QStringLiteral("Tolerance"),
             QStringLiteral("For the largest difference: measured when the model was captured, or from float32 rounding")),
      number(QStringLiteral("Relative"), QStringLiteral("Largest difference as a share of PyTorch's largest element")),
      number(QStringLiteral("Cosine"), QStringLiteral("Cosine of the angle between both; 1: the same direction")),
      text(QStringLiteral("Likely cause"), QStringLiteral("From a table of causes, by the pattern of the difference"), 14),
      text(QStringLiteral("Module"), QStringLiteral("Of the first node that reads it"), 9),
      text(QStringLiteral("Source"), QStringLiteral("Line of the user's Python"), 12)};
}

std::vector<TableRow> rows(const snapshot::GoldenComparison& comparison, const GraphSnapshot* graph) {
  std::unordered_map<std::string, int> byName;
  if (graph != nullptr)
    for (const auto& value : graph->graph().values()) byName.emplace(value.name(), value.id());
  std::vector<int> order;
  for (int i = 0; i < comparison.tensors_size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return rank(comparison.tensors(a)) < rank(comparison.tensors(b)); });
  std::vector<TableRow> out;
  for (const int i : order) {
    const auto& t = comparison.tensors(i);
    TableRow row;
    row.key = i;
    if (const auto it = byName.find(t.name()); it != byName.end()) row.target = Selection::ofValue(it->second);
    TableCell verdict(t.verdict() == "differs"   ? QStringLiteral("✗ differs")
                      : t.verdict() == "skipped" ? QStringLiteral("– skipped")
                      : !compared(t)             ? QStringLiteral("– left out")
                                                 : QStringLiteral("✓ agrees"),
                      rank(t), format::visible(t.reason()));
    verdict.role = QString::fromLatin1(t.verdict() == "differs" ? "error" : rank(t) == 2 ? "muted" : "ok");
    TableCell off = numberCell(t, t.max_abs());
    if (!t.index().empty()) off.tip = place(t);
    const QString cause = format::visible(t.cause().empty() ? t.reason() : t.cause()), source = format::visible(t.source()),
                  name = format::visible(t.name());
    row.cells = {verdict,
                 format::visible(t.kind()),
                 {name, {}, name},
                 format::shapeOf(t.dims()),
                 off,
                 numberCell(t, t.tolerance()),
                 numberCell(t, t.max_rel()),
                 numberCell(t, t.cosine()),
                 {cause, {}, cause},
                 format::visible(t.module()),
                 {source, {}, source}};
    out.push_back(std::move(row));
  }
  return out;
}

QString summary(const snapshot::GoldenComparison& comparison, QString* role) {
  *role = QStringLiteral("warn");
  if (!comparison.captured())
    return QStringLiteral("Nothing of PyTorch lies beside this model; a capture with with_golden=True has it");
  if (!comparison.unchecked().empty()) return QStringLiteral("Unchecked: %1").arg(format::visible(comparison.unchecked()));
  int differ = 0, agree = 0, skipped = 0;
  for (const auto& t : comparison.tensors()) {
    differ += t.verdict() == "differs";
    agree += t.verdict() == "agrees" && compared(t);
    skipped += t.verdict() == "skipped";
  }
  QString text =
      differ > 0
          ? QStringLiteral("%1 of %2 tensors are, in float32, not what PyTorch computed").arg(differ).arg(differ + agree)
          : QStringLiteral("All %1 tensors agree in float32 with what PyTorch computed").arg(agree);
  if (skipped > 0) text += QStringLiteral(", %1 skipped").arg(skipped);
  if (!comparison.first_output().empty())
    text += QStringLiteral("; the first module whose output differs: %1").arg(format::visible(comparison.first_output()));
  *role = differ > 0 ? QStringLiteral("error") : QStringLiteral("ok");
  return text;
}

}  // namespace stepscope::capture
