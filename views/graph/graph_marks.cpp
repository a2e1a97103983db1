// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_marks.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "views/common/bits.h"
#include "views/common/format.h"
#include "views/common/median_times.h"
#include "views/common/padding_cost.h"

namespace stepscope {
namespace {

double heatOf(HeatKind kind, const SnapshotStore& store, const snapshot::Instruction& in) {
  switch (kind) {
    case HeatKind::kBytes: return static_cast<double>(in.bytes_read()) + static_cast<double>(in.bytes_written());
    case HeatKind::kFlops: return in.flops();
    case HeatKind::kBadNumbers: {
      double sum = -1;
      for (const auto& out : in.outputs()) {
        const snapshot::TensorStatistics* s = store.statistics(out.value());
        if (s && store.statisticsStep(out.value()) == store.presentStep())
          sum = std::max(sum, 0.0) + static_cast<double>(s->nan() + s->inf());
      }
      return sum;
    }
    default: return -1;
  }
}

struct Breaks {
  std::unordered_set<int> nodes, instructions;
  std::unordered_set<std::string> ops;

  explicit Breaks(const std::vector<snapshot::Breakpoint>& list) {
    for (const auto& b : list) {
      if (!b.enabled()) continue;
      if (b.condition_case() == snapshot::Breakpoint::kNode) nodes.insert(b.node());
      if (b.condition_case() == snapshot::Breakpoint::kInstruction) instructions.insert(b.instruction());
      if (b.condition_case() == snapshot::Breakpoint::kOp) ops.insert(b.op());
    }
  }
};

}  // namespace

GraphMarks GraphMarks::make(const PlanMarks& known, const SnapshotStore& store, HeatKind heat) {
  GraphMarks marks;
  const GraphModel& model = *known.model;
  marks.nodes.resize(static_cast<std::size_t>(model.size()));
  marks.groups.resize(model.groups().size());
  marks.heat = heat;
  const PlanPtr& plan = known.plan;
  const Breaks breaks(store.breakpoints());
  const bool named = !breaks.nodes.empty() || !breaks.ops.empty(), judged = !store.determinismList().empty();
  marks.inStep = store.position().in_step();
  const int position = store.position().instruction();
  const std::vector<std::int64_t> medians = heat == HeatKind::kTime ? medianTimes(store) : std::vector<std::int64_t>();
  const PaddingCost padding = heat == HeatKind::kPadding ? PaddingCost::of(store) : PaddingCost();
  std::vector<double> heats(marks.nodes.size(), -1);
  std::vector<double> groupHeat[2] = {std::vector<double>(marks.groups.size(), -1),
                                      std::vector<double>(marks.groups.size(), -1)};
  for (int i = 0; i < model.size(); ++i) {
    const ModelNode& from = model.nodes()[static_cast<std::size_t>(i)];
    if (from.graphNode < 0) continue;
    NodeMarks& m = marks.nodes[static_cast<std::size_t>(i)];
    const int column = isForward(from.lane) ? 0 : 1;
    const int index = known.instruction[static_cast<std::size_t>(i)];
    m.inPlace = known.inPlace[static_cast<std::size_t>(i)] != 0;
    m.breakpoint = index >= 0 && breaks.instructions.contains(index);
    if (named || judged) {
      const snapshot::Node& node = *model.node(i);
      m.breakpoint = m.breakpoint || breaks.nodes.contains(node.id()) || breaks.ops.contains(node.op());
      const snapshot::Determinism* d = judged ? store.determinism(node.id()) : nullptr;
      m.nondeterministic = d != nullptr && (bitsOf(*d) == Bits::kMayDiffer || bitsOf(*d) == Bits::kOfThreads);
    }
    std::int64_t ns = -1;
    if (index >= 0) {
      if (marks.inStep && index == position) marks.current = i;
      m.waiting = marks.inStep && !store.ranInThisStep(index) && index != position;
      ns = store.timing(index).ns;
      if (heat == HeatKind::kPadding && static_cast<std::size_t>(index) < padding.instructions.size())
        heats[static_cast<std::size_t>(i)] = padding.instructions[static_cast<std::size_t>(index)];
      else if (heat == HeatKind::kTime && static_cast<std::size_t>(index) < medians.size())
        heats[static_cast<std::size_t>(i)] = static_cast<double>(medians[static_cast<std::size_t>(index)]);
      else if (heat != HeatKind::kNone)
        heats[static_cast<std::size_t>(i)] = heatOf(heat, store, *plan->instruction(index));
    }
    for (int g = from.group; g > 0; g = model.groups()[static_cast<std::size_t>(g)].parent) {
      GroupMarks& group = marks.groups[static_cast<std::size_t>(g)];
      group.waiting[column] += m.waiting ? 1 : 0;
      group.breakpoint[column] |= m.breakpoint;
      if (ns >= 0) {
        group.ns[column] += ns;
        group.timed[column] = true;
      }
      double& sum = groupHeat[column][static_cast<std::size_t>(g)];
      if (heats[static_cast<std::size_t>(i)] >= 0) sum = std::max(sum, 0.0) + heats[static_cast<std::size_t>(i)];
    }
  }
  for (std::size_t g = 0; g < marks.groups.size(); ++g) marks.groups[g].stashBytes = known.stash[g];
  for (const double h : heats) marks.heatMost = std::max(marks.heatMost, h);
  // The square root tells small values apart; the legend says so. Groups sum up and may exceed the largest node.
  const auto share = [&](double h) {
    return h < 0 ? -1.0F : marks.heatMost <= 0 ? 0.0F : static_cast<float>(std::sqrt(std::min(1.0, h / marks.heatMost)));
  };
  for (std::size_t i = 0; i < heats.size(); ++i) marks.nodes[i].heat = share(heats[i]);
  for (std::size_t g = 0; g < marks.groups.size(); ++g) {
    for (int c = 0; c < 2; ++c) marks.groups[g].heat[c] = share(groupHeat[c][g]);
  }
  return marks;
}

QString heatName(HeatKind kind) {
  switch (kind) {
    case HeatKind::kTime: return QStringLiteral("time");
    case HeatKind::kBytes: return QStringLiteral("bytes moved");
    case HeatKind::kFlops: return QStringLiteral("operations");
    case HeatKind::kBadNumbers: return QStringLiteral("NaN and Inf");
    case HeatKind::kPadding: return QStringLiteral("time for padding");
    default: return QStringLiteral("none");
  }
}

QString heatText(HeatKind kind, double value) {
  switch (kind) {
    case HeatKind::kTime:
    case HeatKind::kPadding: return format::time(static_cast<std::int64_t>(value));
    case HeatKind::kBytes: return format::bytes(static_cast<std::int64_t>(value));
    case HeatKind::kFlops: return format::countShort(value) + QStringLiteral("FLOP");
    default: return format::countShort(value);
  }
}

}  // namespace stepscope
