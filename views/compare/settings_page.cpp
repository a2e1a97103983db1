// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/settings_page.h"

#include "views/common/comparison_cells.h"

namespace stepscope {
namespace {

std::vector<TableRow> rowsOf(const RunComparison& c) {
  std::vector<TableRow> rows;
  for (const ComparedOption& o : c.options) {
    const auto cell = [](const std::optional<QString>& value) {
      if (value) return comparison::plain(value->isEmpty() ? QStringLiteral("“”") : *value);
      TableCell none(QStringLiteral("not there"), {}, QStringLiteral("this run has no such option"));
      none.role = QStringLiteral("faint");
      return none;
    };
    TableRow row;
    row.cells = {comparison::plain(o.name), cell(o.a), cell(o.b)};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

CompareSettingsPage::CompareSettingsPage(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("compare_settings"), QStringLiteral("Settings"),
                 {{QStringLiteral("Option"), QStringLiteral("Options and settings of the run that differ"), false, 11},
                  {QStringLiteral("A"), QStringLiteral("Value in run A"), false, 5},
                  {QStringLiteral("B"), QStringLiteral("Value in run B"), false, 5}},
                 parent) {
  setFilterPlaceholder(QStringLiteral("Filter options"));
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareSettingsPage::refillLater);
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareSettingsPage::emptyChanged);
}

QString CompareSettingsPage::emptyText() const {
  const auto& result = store().project().runComparison();
  if (!result) return comparison::noneText(store().project());
  return result->options.empty() ? QStringLiteral("Every option is the same in both runs.") : QString();
}

void CompareSettingsPage::refill() {
  const auto& result = store().project().runComparison();
  setRows(result ? rowsOf(*result) : std::vector<TableRow>());
}

}  // namespace stepscope
