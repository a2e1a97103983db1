// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/buffer/buffer_view.h"

#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostUsers = 30;
}

BufferView::BufferView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("buffer"), QStringLiteral("Buffer"), parent), page_(new Details) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(page_);
  connect(page_, &Details::selected, this, [this](const Selection& s) { selection().select(s); });
  connect(&selection(), &SelectionModel::selectionChanged, this, &BufferView::refresh);
  connect(&store(), &SnapshotStore::planChanged, this, &BufferView::refresh);
  refresh();
}

QString BufferView::emptyText() const {
  return store().plan()
             ? QString()
             : QStringLiteral("No plan yet.\nOpen and build a model (Ctrl+O), then select a buffer in the memory map.");
}

void BufferView::refresh() {
  emit emptyChanged();
  const PlanPtr& plan = store().plan();
  if (!plan) return;
  const auto& p = plan->plan();
  page_->begin();
  if (const auto* b = plan->buffer(selection().selection().buffer)) {
    page_->title(b->name().empty() ? QStringLiteral("workspace %1").arg(b->index()) : format::visible(b->name()));
    page_->row(QStringLiteral("Class"),
               Details::coloured(QStringLiteral("■ "), Tokens::current().bufferClass(b->buffer_class())) +
                   Details::text(names::bufferClass(b->buffer_class())));
    page_->row(QStringLiteral("Size"), Details::text(format::bytes(b->bytes())) +
                                           Details::quiet(QStringLiteral("  ") + format::bytesExact(b->bytes())));
    page_->row(QStringLiteral("Address"), b->in_arena() ? Details::text(format::bytes(b->offset())) +
                                                              Details::quiet(QStringLiteral("  from the start of the arena"))
                                                        : Details::text(QStringLiteral("persistent, outside the arena")));
    page_->row(QStringLiteral("Lifetime"),
               b->first() < 0 ? Details::quiet(names::lifetime(*b))
                              : Details::link(Selection::ofInstruction(b->first()), QString::number(b->first())) +
                                    Details::text(QStringLiteral(" – ")) +
                                    Details::link(Selection::ofInstruction(b->last()), QString::number(b->last())) +
                                    Details::quiet(QStringLiteral("  first and last instruction")));
    page_->row(QStringLiteral("Why here"), Details::decision(*plan, *b));
    for (const auto& refusal : b->refusals())
      page_->row(QStringLiteral("Why not"), Details::quiet(format::visible(refusal)));
    if (const int next = plan->overwrittenBy(b->index()); next >= 0) {
      const auto* in = plan->instruction(next);
      page_->row(QStringLiteral("Then"),
                 Details::text(QStringLiteral("overwritten by ")) +
                     Details::link(Selection::ofInstruction(next),
                                   in ? QStringLiteral("%1 %2").arg(next).arg(names::op(*in)) : QString::number(next)));
    }
    const auto& users = plan->users(b->index());
    page_->heading(QStringLiteral("Users"));
    for (std::size_t i = 0; i < std::min(users.size(), kMostUsers); ++i) {
      const auto* in = plan->instruction(users[i]);
      bool writes = false;
      for (const auto& o : in->outputs()) writes = writes || o.buffer() == b->index();
      page_->paragraph(
          Details::link(Selection::ofInstruction(users[i]), QStringLiteral("%1 %2").arg(users[i]).arg(names::op(*in))) +
          Details::quiet(writes ? QStringLiteral("  writes") : QStringLiteral("  reads")));
    }
    if (users.size() > kMostUsers)
      page_->paragraph(Details::quiet(QStringLiteral("and %1 more").arg(users.size() - kMostUsers)));
  } else {
    page_->paragraph(Details::quiet(QStringLiteral("Select a buffer in the memory map or the list of buffers.")));
  }
  page_->heading(QStringLiteral("Peak"));
  page_->row(QStringLiteral("Arena"),
             Details::text(format::bytes(p.arena_bytes())) +
                 Details::quiet(QStringLiteral("  lower bound %1, %2 above it")
                                    .arg(format::bytes(p.lower_bound_bytes()),
                                         format::percent(static_cast<double>(p.arena_bytes() - p.lower_bound_bytes()),
                                                         static_cast<double>(p.lower_bound_bytes())))));
  page_->row(QStringLiteral("Persistent"), Details::text(format::bytes(p.persistent_bytes())));
  page_->row(QStringLiteral("At"), Details::link(Selection::ofInstruction(p.peak_instruction()),
                                                 QStringLiteral("instruction %1").arg(p.peak_instruction())));
  // Owners are in the arena or outside it: together they are the whole of that moment.
  std::int64_t whole = 0;
  for (const auto& owner : p.peak_owners()) whole += owner.bytes();
  page_->heading(QStringLiteral("Alive at the peak, of %1").arg(format::bytes(whole)));
  std::vector<Details::Amount> owners;
  for (const auto& owner : p.peak_owners())
    owners.push_back({names::memoryOwner(owner.owner()), format::bytes(owner.bytes()),
                      format::percent(static_cast<double>(owner.bytes()), static_cast<double>(whole))});
  page_->amounts(owners);
  page_->heading(QStringLiteral("Plan"));
  page_->row(QStringLiteral("Variant"), Details::text(format::visible(p.signature())) + QStringLiteral("<br>") +
                                            Details::quiet(format::visible(p.reason())));
  page_->end();
}

}  // namespace stepscope
