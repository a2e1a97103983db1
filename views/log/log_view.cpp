// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/log/log_view.h"

#include "views/common/format.h"

namespace stepscope {

LogView::LogView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("log"), tr("Log"),
                 {{tr("Time"), tr("Since the worker started, by its monotonic clock"), true, 7}, {tr("Level"), tr("debug, info, warning, error"), false, 6}, {tr("Text"), tr("The record as it was written"), false, 40}},
                 parent) {
  setFilterPlaceholder(tr("Filter: any word hides the other lines, nothing is dropped"));
  connect(&store(), &SnapshotStore::logChanged, this, &LogView::refillLater);
}

QString LogView::emptyText() const {
  return store().log().empty() ? tr("Nothing logged yet.\nRecords of the worker appear here once it runs.") : QString();
}

void LogView::refill() {
  std::vector<TableRow> rows;
  rows.reserve(store().log().size());
  qint64 line = 0;
  for (const LogLine& record : store().log()) {
    TableRow row;
    row.key = line++;
    const QString text = format::visible(record.text);
    TableCell level(record.level);
    level.role = record.level.startsWith(u"err") ? QStringLiteral("error") : record.level.startsWith(u"warn") ? QStringLiteral("warn") : QStringLiteral("muted");
    TableCell time(record.ns > 0 ? format::time(record.ns) : QString(), QVariant::fromValue<qint64>(record.ns));
    time.role = QStringLiteral("faint");
    row.cells = {time, level, {text, text, text}};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
  table()->scrollToBottom();
}

}  // namespace stepscope
