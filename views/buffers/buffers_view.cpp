// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/buffers/buffers_view.h"

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

BuffersView::BuffersView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("buffers"), tr("Buffers"),
                 {{tr("Buffer"), tr("The value whose memory it is"), false, 12},
                  {tr("Class"), tr("What the memory is for"), false, 8},
                  {tr("Bytes"), tr("Size of the buffer"), true, 6},
                  {tr("Lifetime"), tr("First and last instruction that touch it"), true, 8},
                  {tr("Place"), tr("Why it lies where it lies"), false, 14}},
                 parent) {
  setFilterPlaceholder(tr("Filter: stash, gradient, in place …"));
  connect(&store(), &SnapshotStore::planChanged, this, &BuffersView::refillLater);
}

QString BuffersView::emptyText() const { return store().plan() ? QString() : tr("No plan yet.\nOpen and build a model (Ctrl+O): its buffers appear here."); }

void BuffersView::refill() {
  std::vector<TableRow> rows;
  if (const PlanPtr& plan = store().plan()) {
    for (const auto& b : plan->plan().buffers()) {
      TableRow row;
      row.target = Selection::ofBuffer(b.index());
      QString why = format::visible(b.decision());
      QStringList refusals;
      for (const auto& r : b.refusals()) refusals << format::visible(r);
      row.cells = {format::visible(b.name()).isEmpty() ? tr("workspace %1").arg(b.index()) : format::visible(b.name()),
                   names::bufferClass(b.buffer_class()),
                   {format::bytes(b.bytes()), QVariant::fromValue<qint64>(b.bytes()), format::bytesExact(b.bytes())},
                   {QStringLiteral("%1 – %2").arg(b.first()).arg(b.last()), b.first()},
                   {why, why, refusals.isEmpty() ? why : why + '\n' + refusals.join('\n')}};
      row.cells[1].role = QStringLiteral("muted");
      rows.push_back(std::move(row));
    }
  }
  setRows(std::move(rows));
}

}  // namespace stepscope
