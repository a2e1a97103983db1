// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/instructions/instruction_model.h"

#include <algorithm>

#include "views/common/branches.h"
#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

InstructionModel::InstructionModel(const SnapshotStore& store, QObject* parent) : QAbstractListModel(parent), store_(store) {
  connect(&store, &SnapshotStore::planChanged, this, &InstructionModel::rebuild);
  connect(&store, &SnapshotStore::graphChanged, this, &InstructionModel::rebuild);
  connect(&store, &SnapshotStore::breakpointsChanged, this, &InstructionModel::refreshBreakpoints);
  const auto repaint = [this] {
    if (!rows_.empty()) emit dataChanged(index(0), index(rowCount() - 1));
  };
  connect(&store, &SnapshotStore::positionChanged, this, repaint);
  connect(&store, &SnapshotStore::stepsChanged, this, repaint);
  rebuild();
}

void InstructionModel::setFilter(const InstructionFilter& filter) {
  filter_ = filter;
  rebuild();
}

void InstructionModel::refreshBreakpoints() {
  breakpoints_.clear();
  breakpointsOff_.clear();
  for (const auto& b : store_.breakpoints()) {
    int at = -1;
    if (b.condition_case() == snapshot::Breakpoint::kInstruction) at = b.instruction();
    if (b.condition_case() == snapshot::Breakpoint::kNode && plan_) at = plan_->instructionOfNode(b.node());
    if (at >= 0) (b.enabled() ? breakpoints_ : breakpointsOff_).insert(at);
  }
  if (!rows_.empty()) emit dataChanged(index(0), index(rowCount() - 1));
}

InstructionFacts InstructionModel::facts(int i) const {
  const snapshot::Instruction& in = plan_->plan().instructions(i);
  InstructionFacts f;
  f.op = names::op(in);
  f.phase = names::phase(in.phase());
  f.implementation = format::visible(in.implementation());
  f.bytes = static_cast<double>(in.bytes_written());
  f.read = static_cast<double>(in.bytes_read());
  f.flops = in.flops();
  f.ns = static_cast<double>(store_.timing(i).ns);
  f.index = i;
  f.view = in.view();
  f.breakpoint = breakpoints_.contains(i);
  f.ran = store_.ranInThisStep(i);
  f.text = f.op + ' ' + format::visible(in.label());
  if (graph_) {
    if (const snapshot::Node* node = graph_->node(in.node())) {
      f.module = format::visible(node->provenance().module_path());
      f.random = node->random();
      f.text += ' ' + names::place(*graph_, *node);
    }
    for (const auto& operand : in.inputs()) f.inputs << names::value(*graph_, operand.value());
    for (const auto& operand : in.outputs()) f.outputs << names::value(*graph_, operand.value());
  }
  return f;
}

void InstructionModel::rebuild() {
  beginResetModel();
  graph_ = store_.graph();
  plan_ = store_.plan();
  rows_.clear();
  matching_ = 0;
  const int count = plan_ ? plan_->size() : 0;
  int hidden = 0, phaseEnd = 0;
  for (int i = 0; i < count; ++i) {
    if (i >= phaseEnd) {
      phaseEnd = plan_->phaseRange(i).second;
      if (hidden > 0) rows_.push_back({kGap, i - hidden, hidden});
      hidden = 0;
      rows_.push_back({kPhase, i, 0});
    }
    if (!filter_.empty() && !filter_.matches(facts(i))) {
      ++hidden;
      continue;
    }
    if (hidden > 0) rows_.push_back({kGap, i - hidden, hidden});
    hidden = 0;
    rows_.push_back({kInstruction, i, 0});
    ++matching_;
  }
  if (hidden > 0) rows_.push_back({kGap, count - hidden, hidden});
  endResetModel();
  refreshBreakpoints();
}

int InstructionModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

InstructionModel::Line InstructionModel::line(int row) const {
  Line line;
  if (row < 0 || row >= rowCount()) return line;
  const Row& r = rows_[static_cast<std::size_t>(row)];
  line.kind = r.kind;
  line.index = r.index;
  line.hidden = r.hidden;
  if (r.kind == kGap) return line;
  const snapshot::Instruction& in = plan_->plan().instructions(r.index);
  const auto& position = store_.position();
  if (r.kind == kPhase) {
    const auto [begin, end] = plan_->phaseRange(r.index);
    line.op = names::phase(in.phase() == snapshot::RECOMPUTE ? snapshot::BACKWARD : in.phase());
    std::int64_t ns = 0;
    int timed = 0, ran = 0, again = 0;
    for (int i = begin; i < end; ++i) {
      again += plan_->plan().instructions(i).phase() == snapshot::RECOMPUTE;
      const Timing& t = store_.timing(i);
      const bool now = !position.in_step() || (i < position.instruction() && t.step == position.step());
      ran += position.in_step() && i < position.instruction();
      if (t.ns < 0 || !now) continue;
      ns += t.ns;
      ++timed;
    }
    line.place = end - begin == 1 ? QStringLiteral("1 instruction")
                                  : QStringLiteral("%1 instructions").arg(format::count(end - begin));
    if (again > 0) line.place += QStringLiteral(" · %1 recomputed").arg(format::count(again));
    if (position.in_step() && ran == 0) {
      line.place += QStringLiteral(" · not reached");
    } else if (timed > 0) {
      line.place += QStringLiteral(" · ") + format::time(ns) +
                    (position.in_step() && ran < end - begin ? QStringLiteral(" so far") : QString());
    }
    return line;
  }
  line.op = names::op(in);
  const bool copy = in.kind() == snapshot::KIND_COPY && in.outputs_size() > 0;
  if (graph_ && copy) {  // of what, and where to: its node is the one that it serves
    const snapshot::Buffer* to = plan_->buffer(in.outputs(0).buffer());
    line.place = names::value(*graph_, in.outputs(0).value()) +
                 (to && to->on_host() ? QStringLiteral(" to host") : QStringLiteral(" to device"));
  } else if (graph_) {
    if (const snapshot::Node* node = graph_->node(in.node())) {
      line.place = (in.phase() == snapshot::RECOMPUTE ? QStringLiteral("↻ ") : QString()) + names::place(*graph_, *node);
      line.category = QString::fromStdString(node->category());
    }
  }
  const Timing& t = store_.timing(r.index);
  line.time = in.view() || t.ns < 0 ? QString() : format::time(t.ns);  // a view takes none; its bytes say so
  line.fresh = !position.in_step() || r.index < position.instruction();
  if (const Taken taken = takenIn(store_, r.index); taken != Taken::kRan) {
    line.left = true;
    line.fresh = false;
    line.time = taken == Taken::kBranchLeftOut ? QStringLiteral("not taken") : QStringLiteral("no update");
  }
  line.bytes = in.view() ? QStringLiteral("view") : format::bytes(in.bytes_written());
  if (!in.view() && in.outputs_size() > 0) {
    const snapshot::Buffer* buffer = plan_->buffer(in.outputs(0).buffer());
    if (buffer && buffer->shares() >= 0) line.bytes = QStringLiteral("in place");
  }
  line.breakpoint = breakpoints_.contains(r.index);
  line.breakpointOff = breakpointsOff_.contains(r.index);
  return line;
}

QString InstructionModel::tooltip(int i) const {
  const snapshot::Instruction& in = plan_->plan().instructions(i);
  const Timing& t = store_.timing(i);
  QString text = QStringLiteral("%1  %2\n").arg(i).arg(format::visible(in.label()));
  if (in.phase() == snapshot::RECOMPUTE)
    text += QStringLiteral("↻ Recomputed: a forward value that is made again here instead of being kept\n");
  if (const Taken taken = takenIn(store_, i); taken != Taken::kRan) {
    text +=
        (taken == Taken::kBranchLeftOut ? QStringLiteral("It did not run in step %1: its branch of the If was not taken\n")
                                        : QStringLiteral("It did not run in step %1, which only accumulates\n"))
            .arg(t.step);
  } else if (t.ns >= 0) {
    text += QStringLiteral("Time: wall clock of this instruction alone, %1, in step %2\n")
                .arg(format::timeExact(t.ns))
                .arg(t.step);
  } else {
    text += QStringLiteral("Time: it has not run yet\n");
  }
  text += QStringLiteral("Bytes: written to its outputs %1, read %2\n")
              .arg(format::bytesExact(in.bytes_written()), format::bytesExact(in.bytes_read()));
  if (in.flops() > 0) {
    text += QStringLiteral("Operations: %1 (a multiply-add counts as two)%2\n")
                .arg(format::countShort(in.flops()),
                     t.ns > 0 ? QStringLiteral(", ") + format::flopRate(in.flops(), t.ns) : QString());
  }
  if (!in.implementation().empty()) text += QStringLiteral("Implementation: %1\n").arg(format::visible(in.implementation()));
  if (in.outputs_size() > 0) {
    if (const snapshot::Buffer* buffer = plan_->buffer(in.outputs(0).buffer())) {
      text += QStringLiteral("Buffer: %1").arg(format::visible(buffer->decision()));
    }
  }
  if (in.update_entry()) text += QStringLiteral("\nRuns only when the optimizer updates");
  return text.trimmed();
}

QVariant InstructionModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Row& r = rows_[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole: {
      const Line l = line(index.row());
      if (l.kind == kPhase) return l.op + '\t' + l.place;
      if (l.kind == kGap) return QStringLiteral("%1 more").arg(format::count(l.hidden));
      return QStringLiteral("%1\t%2\t%3\t%4\t%5").arg(l.index).arg(l.op, l.place, l.time, l.bytes);
    }
    case Qt::ToolTipRole:
      if (r.kind == kGap) return QStringLiteral("Left out by the filter");
      if (r.kind == kPhase)
        return QStringLiteral(
            "Sum of the times of this phase's instructions in the present step, or in the last one between steps");
      return tooltip(r.index);
    case kKindRole: return r.kind;
    case kIndexRole: return r.index;
    default: return {};
  }
}

Qt::ItemFlags InstructionModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  const bool instruction = rows_[static_cast<std::size_t>(index.row())].kind == kInstruction;
  return instruction ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren
                     : Qt::ItemIsEnabled | Qt::ItemNeverHasChildren;
}

int InstructionModel::nodeOf(int instruction) const {
  const auto* in = plan_ ? plan_->instruction(instruction) : nullptr;
  return in ? in->node() : -1;
}

int InstructionModel::rowOf(int instruction) const {
  const auto it = std::partition_point(rows_.begin(), rows_.end(), [instruction](const Row& r) {
    return r.index < instruction || (r.index == instruction && r.kind != kInstruction);
  });
  return it != rows_.end() && it->kind == kInstruction && it->index == instruction ? static_cast<int>(it - rows_.begin())
                                                                                   : -1;
}

}  // namespace stepscope
