// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/node/node_view.h"

#include <QVBoxLayout>
#include <algorithm>

#include "views/common/bits.h"
#include "views/common/empty_text.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr int kMostLinks = 24;
}

NodeView::NodeView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("node"), QStringLiteral("Node"), parent), page_(new Details) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(page_);
  connect(page_, &Details::selected, this, [this](const Selection& s) {
    Selection wanted = s;
    // Within the selected nodes another one becomes the current; operands lead out of them.
    if (const auto& group = selection().selection().group;
        group && s.value < 0 && s.instruction < 0 && group->contains(s.node))
      wanted.group = group;
    selection().select(wanted);
  });
  connect(page_, &Details::commandClicked, &wishes(), &Wishes::command);
  connect(&selection(), &SelectionModel::selectionChanged, this, &NodeView::refresh);
  connect(&store(), &SnapshotStore::graphChanged, this, &NodeView::refresh);
  connect(&store(), &SnapshotStore::planChanged, this, &NodeView::refresh);
  connect(&store(), &SnapshotStore::positionChanged, this, &NodeView::refresh);
  connect(&store(), &SnapshotStore::determinismChanged, this, &NodeView::refresh);
  setProperty(kNeedsNoPlan, true);
  refresh();
}

QString NodeView::emptyText() const {
  if (!store().graph()) return QStringLiteral("No model is open.\nOpen one (Ctrl+O) and select a node.");
  return store().graph()->node(selection().selection().node)
             ? QString()
             : QStringLiteral("No node is selected.\nSelect one in the graph or the instruction list.");
}

void NodeView::refresh() {
  emit emptyChanged();
  const GraphPtr& graph = store().graph();
  const snapshot::Node* node = graph ? graph->node(selection().selection().node) : nullptr;
  if (!node) return;
  const Tokens& t = Tokens::current();
  const auto& p = node->provenance();
  page_->begin();
  if (const auto& group = selection().selection().group; group && group->contains(node->id())) {
    const auto& nodes = group->nodes();
    const auto place = std::lower_bound(nodes.begin(), nodes.end(), node->id()) - nodes.begin();
    QString text = Details::text(
        QStringLiteral("%1 of %2 nodes of %3").arg(place + 1).arg(nodes.size()).arg(format::visible(group->name())));
    if (place > 0)
      text += QStringLiteral("  ") +
              Details::link(Selection::ofNode(nodes[static_cast<std::size_t>(place) - 1]), QStringLiteral("previous"));
    if (place + 1 < static_cast<std::ptrdiff_t>(nodes.size()))
      text += QStringLiteral("  ") +
              Details::link(Selection::ofNode(nodes[static_cast<std::size_t>(place) + 1]), QStringLiteral("next"));
    page_->row(QStringLiteral("Selected"), text);
  }
  const QString domain = format::visible(node->domain());
  page_->row(QStringLiteral("Operator"),
             Details::strong(names::op(*node)) + (domain.isEmpty() ? QString() : ' ' + Details::quiet(domain)));
  page_->row(QStringLiteral("Name"), Details::text(format::visible(node->name())));
  page_->row(QStringLiteral("Phase"),
             Details::text(names::phase(node->phase()).toLower()) +
                 (node->random() ? Details::quiet(QStringLiteral(" · draws keyed random numbers")) : QString()));
  if (!p.module_path().empty())
    page_->row(QStringLiteral("Module"),
               Details::text(format::visible(p.module_path())) +
                   (p.module_path_inferred() ? Details::quiet(QStringLiteral("  inferred")) : QString()));
  if (const PlanPtr& plan = store().plan()) {
    if (const auto* in = plan->instruction(plan->instructionOfNode(node->id()))) {
      page_->row(QStringLiteral("Instruction"),
                 Details::link(Selection::ofInstruction(in->index()), QString::number(in->index())) +
                     Details::quiet(QStringLiteral(" of %1").arg(format::count(plan->size()))));
      const Timing& timing = store().timing(in->index());
      if (timing.ns >= 0) {
        QString time =
            Details::text(format::time(timing.ns)) + Details::quiet(QStringLiteral("  in step %1").arg(timing.step));
        const QString rate = format::flopRate(in->flops(), timing.ns);
        if (!rate.isEmpty()) time += Details::quiet(QStringLiteral(" · ") + rate);
        page_->row(QStringLiteral("Time"), time);
      }
      page_->row(QStringLiteral("Reads, writes"),
                 Details::text(format::bytes(in->bytes_read()) + QStringLiteral(", ") + format::bytes(in->bytes_written())));
      if (!in->implementation().empty())
        page_->row(QStringLiteral("Implementation"), Details::mono(format::visible(in->implementation())));
    } else {
      page_->row(QStringLiteral("Instruction"), Details::quiet(QStringLiteral("none: it was folded or is not executed")));
    }
  }
  const auto operands = [&](const QString& title, const auto& ids) {
    if (ids.empty()) return;
    page_->heading(title);
    int shown = 0;
    for (const int id : ids) {
      if (id < 0) continue;
      if (++shown > kMostLinks) break;
      const snapshot::Value* v = graph->value(id);
      page_->paragraph(Details::link(Selection::ofValue(id), names::value(*graph, id)) + QStringLiteral("<br>") +
                       (v ? Details::quiet(names::shapeAndType(*v)) : QString()));
    }
    if (ids.size() > kMostLinks)
      page_->paragraph(Details::quiet(QStringLiteral("and %1 more").arg(ids.size() - kMostLinks)));
  };
  operands(QStringLiteral("Inputs"), node->inputs());
  operands(QStringLiteral("Outputs"), node->outputs());
  if (node->attributes_size() > 0) {
    page_->heading(QStringLiteral("Attributes"));
    for (const auto& a : node->attributes()) page_->row(format::visible(a.name()), Details::mono(format::visible(a.text())));
  }
  page_->heading(QStringLiteral("Lineage"));
  page_->row(QStringLiteral("Made by"), Details::text(format::visible(p.pass())));
  if (const int forward = graph->forwardOf(node->id()); forward >= 0)
    page_->row(QStringLiteral("Forward"), Details::link(Selection::ofNode(forward), names::node(*graph, forward)));
  QStringList sources;
  for (const int id : p.sources()) {
    if (sources.size() >= kMostLinks) break;
    if (graph->node(id)) sources << Details::link(Selection::ofNode(id), names::node(*graph, id));
  }
  if (!sources.isEmpty()) page_->row(QStringLiteral("From"), sources.join(QStringLiteral("<br>")));
  QStringList gradients;
  for (const int id : graph->mirrored(node->id())) {
    if (gradients.size() >= kMostLinks) break;
    gradients << Details::link(Selection::ofNode(id), names::node(*graph, id));
  }
  if (!gradients.isEmpty()) page_->row(QStringLiteral("Gradient"), gradients.join(QStringLiteral("<br>")));
  if (const QString source = names::source(p); !source.isEmpty()) {
    page_->row(QStringLiteral("Source"), Details::mono(source));
    if (!p.source_code().empty()) page_->row({}, Details::mono(format::visible(p.source_code())));
  }
  for (const auto& predicate : node->predicates()) {
    page_->row(QStringLiteral("Only if"),
               Details::link(Selection::ofValue(predicate.value()), names::value(*graph, predicate.value())) +
                   Details::text(predicate.expected() ? QStringLiteral(" is true") : QStringLiteral(" is false")));
  }
  if (const auto* d = store().determinism(node->id())) {
    page_->row(
        QStringLiteral("Determinism"),
        Details::explained(Details::coloured(format::visible(d->verdict()), bitsOf(*d) == Bits::kSame        ? t.ok
                                                                            : bitsOf(*d) == Bits::kMayDiffer ? t.warn
                                                                                                             : t.text),
                           bitsMeaning(*d)) +
            QStringLiteral("<br>") + Details::quiet(format::visible(d->reason())));
  }
  page_->end();
}

}  // namespace stepscope
