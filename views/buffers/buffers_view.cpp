// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/buffers/buffers_view.h"

#include <QApplication>
#include <QPointer>
#include <QThreadPool>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

BuffersView::BuffersView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("buffers"), QStringLiteral("Buffers"),
                 {{QStringLiteral("Buffer"), QStringLiteral("The value whose memory it is"), false, 10},
                  {QStringLiteral("Bytes"), QStringLiteral("Size of the buffer"), true, 6},
                  {QStringLiteral("Lifetime"), QStringLiteral("First and last instruction that touch it"), true, 8},
                  {QStringLiteral("Class"), QStringLiteral("What the memory is for"), false, 8},
                  {QStringLiteral("Place"), QStringLiteral("Why it lies where it lies"), false, 14}},
                 parent) {
  setFilterPlaceholder(QStringLiteral("Filter: stash, gradient, in place …"));
  connect(&store(), &SnapshotStore::planChanged, this, &BuffersView::refillLater);
}

QString BuffersView::emptyText() const {
  return store().plan() ? QString()
                        : QStringLiteral("No plan yet.\nOpen and build a model (Ctrl+O): its buffers appear here.");
}

QString BuffersView::headerText() const {
  const int all = store().plan() ? store().plan()->plan().buffers_size() : 0;
  return all > kMostRows ? QStringLiteral("the %1 largest of %2").arg(format::count(kMostRows), format::count(all))
                         : TablePanel::headerText();
}

void BuffersView::refill() {
  const PlanPtr plan = store().plan();
  if (!plan) {
    setRows({});
    return;
  }
  // Texts of thousands of buffers take longer than a frame; the rows come when they are made.
  QThreadPool::globalInstance()->start([self = QPointer<BuffersView>(this), plan] {
    std::vector<const snapshot::Buffer*> buffers;
    for (const auto& b : plan->plan().buffers()) buffers.push_back(&b);
    if (buffers.size() > kMostRows) {
      std::nth_element(buffers.begin(), buffers.begin() + kMostRows, buffers.end(),
                       [](const auto* a, const auto* b) { return a->bytes() > b->bytes(); });
      buffers.resize(kMostRows);
      std::sort(buffers.begin(), buffers.end(), [](const auto* a, const auto* b) { return a->index() < b->index(); });
    }
    std::vector<TableRow> rows;
    for (const auto* b : buffers) rows.push_back(rowOf(*b));
    QMetaObject::invokeMethod(qApp, [self, plan, rows = std::move(rows)]() mutable {
      if (self && self->store().plan() == plan) self->setRows(std::move(rows));
    });
  });
}

TableRow BuffersView::rowOf(const snapshot::Buffer& b) {
  TableRow row;
  row.target = Selection::ofBuffer(b.index());
  const QString why = format::visible(b.decision());
  QStringList refusals;
  for (const auto& r : b.refusals()) refusals << format::visible(r);
  row.cells = {
      format::visible(b.name()).isEmpty() ? QStringLiteral("workspace %1").arg(b.index()) : format::visible(b.name()),
      {format::bytes(b.bytes()), QVariant::fromValue<qint64>(b.bytes()), format::bytesExact(b.bytes())},
      {names::lifetime(b), b.first()},
      names::bufferClass(b.buffer_class()),
      {why, why, refusals.isEmpty() ? why : why + '\n' + refusals.join('\n')}};
  row.cells[3].role = QStringLiteral("muted");
  return row;
}

}  // namespace stepscope
