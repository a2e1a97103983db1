// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/value_facts.h"

#include <algorithm>

#include "views/common/bits.h"
#include "views/common/branches.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/running.h"
#include "views/common/script_drives.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

// Whether these numbers are a person's: set in the step that they are of, or since.
bool isEdited(const SnapshotStore& store, const snapshot::TensorData& tensor) {
  const auto& p = store.position();
  const auto& all = store.findings().edited();
  return std::any_of(all.begin(), all.end(), [&](const EditedValue& e) {
    const bool stands = e.step == p.step() && (e.instruction < 0 || p.in_step());
    return e.value == tensor.value() && (stands || (e.instruction >= 0 && e.step == tensor.step()));
  });
}

}  // namespace

ValueFacts::ValueFacts(const SnapshotStore& store, QWidget* parent) : Details(parent), store_(store) {
  setFitContents(true);
}

void ValueFacts::showValue(int value) {
  const GraphPtr& graph = store_.graph();
  const auto* v = graph ? graph->value(value) : nullptr;
  if (!v) return;
  const Tokens& t = Tokens::current();
  const PlanPtr& plan = store_.plan();
  const TensorPtr tensor = store_.tensor(value);
  const int producer = plan ? plan->producerOfValue(value) : -1;
  const auto& position = store_.position();
  begin();
  const bool pending = position.in_step() && producer >= position.instruction();
  const bool running = Running::of(store_).on();
  if (running) {
    const bool old = tensor && tensor->unavailable().empty() && tensor->step() >= 0;
    notice(Details::text(old ? QStringLiteral("Values of step %1, before the run: those of where it stops are read then.")
                                   .arg(format::count(tensor->step()))
                             : QStringLiteral("The run goes on: values are read where it stops.")));
  } else if (tensor && !tensor->unavailable().empty()) {
    const QString why = format::visible(tensor->unavailable());
    QString text = Details::text(why.left(1).toUpper() + why.mid(1));
    if (pending)
      text = Details::text(QStringLiteral("Not computed yet in step %1. ").arg(position.step())) +
             Details::command(QStringLiteral("runpast:%1").arg(producer), QStringLiteral("Run past %1").arg(producer));
    else if (tensor->elsewhere() && producer >= 0)
      text += QStringLiteral(". ") +
              Details::command(QStringLiteral("runpast:%1").arg(producer), QStringLiteral("Run past %1").arg(producer));
    else if (!tensor->elsewhere() && takenIn(store_, producer) == Taken::kRan && !scriptDrives(store_) && plan &&
             plan->overwrittenBy(plan->bufferOfValue(value)) >= 0)
      text += QStringLiteral(". ") + Details::command(QStringLiteral("pin"), QStringLiteral("Pin keeps it in the plan"));
    notice(text);
  } else if (tensor && !tensor->current()) {
    QString text = Details::text(QStringLiteral("Values of step %1: ").arg(tensor->step()));
    text += position.in_step() ? Details::text(QStringLiteral("not computed yet in step %1. ").arg(position.step()))
                               : Details::text(QStringLiteral("the next step has not begun. "));
    if (producer >= 0)
      text += Details::command(QStringLiteral("runpast:%1").arg(producer), QStringLiteral("Run past %1").arg(producer));
    notice(text);
  }
  title(names::value(*graph, value));
  const bool byHand = tensor && tensor->unavailable().empty() && isEdited(store_, *tensor);
  if (tensor && tensor->unavailable().empty() && tensor->step() >= 0)
    row(QStringLiteral("Values"),
        Details::text(QStringLiteral("of step %1").arg(format::count(tensor->step()))) +
            (byHand ? Details::coloured(QStringLiteral(", edited by hand"), t.warn) : QString()) +
            (!running && tensor->step() == store_.presentStep() ? QString()
                                                                : Details::quiet(QStringLiteral("  not the present one"))));
  row(QStringLiteral("Shape, type"), Details::text(names::shapeAndType(*v)));
  row(QStringLiteral("Role"),
      Details::text(names::role(*v)) + (v->trained_reason().empty()
                                            ? QString()
                                            : Details::quiet(QStringLiteral("  ") + format::visible(v->trained_reason()))));
  if (producer >= 0) {
    const auto* in = plan->instruction(producer);
    row(QStringLiteral("Made by"),
        Details::link(Selection::ofInstruction(producer), QStringLiteral("%1 %2").arg(producer).arg(names::op(*in))));
  }
  const auto* buffer = plan ? plan->buffer(plan->bufferOfValue(value)) : nullptr;
  if (buffer) {
    row(QStringLiteral("Buffer"), Details::decision(*plan, *buffer));
    row(QStringLiteral("Lives"), Details::text(names::lifetime(*buffer)) +
                                     Details::quiet(QStringLiteral("  ") + names::bufferClass(buffer->buffer_class())));
    if (const int next = plan->overwrittenBy(buffer->index()); next >= 0) {
      row(QStringLiteral("Reused"),
          Details::text(QStringLiteral("by ")) +
              Details::link(Selection::ofInstruction(next),
                            QStringLiteral("%1 %2").arg(next).arg(names::op(*plan->instruction(next)))) +
              Details::quiet(QStringLiteral("  after its last use")));
    }
  }
  const int madeBy = graph->producer(value);
  if (const auto* node = graph->node(madeBy)) {
    if (const int forward = graph->forwardOf(madeBy); forward >= 0) {
      row(QStringLiteral("From"),
          Details::link(Selection::ofNode(forward), names::node(*graph, forward)) +
              Details::quiet(QStringLiteral("  by %1").arg(format::visible(node->provenance().pass()))));
    }
    if (const QString source = names::source(node->provenance()); !source.isEmpty())
      row(QStringLiteral("Source"), Details::mono(source));
  }
  if (const auto* d = store_.determinism(madeBy); d && bitsOf(*d) != Bits::kSame)
    row(QStringLiteral("Bits"), Details::explained(bitsOf(*d) == Bits::kMayDiffer ? Details::coloured(bitsText(*d), t.warn)
                                                                                  : Details::quiet(bitsText(*d)),
                                                   bitsMeaning(*d)));
  QString tags;
  const auto has = [value](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  if (byHand) tags += Details::tag(QStringLiteral("edited"), t.warn);
  if (has(store_.pinned())) tags += Details::tag(QStringLiteral("pinned"), t.muted);
  if (has(store_.watched())) tags += Details::tag(QStringLiteral("watched"), t.muted);
  if (!tags.isEmpty()) paragraph(tags);
  end();
}

}  // namespace stepscope
