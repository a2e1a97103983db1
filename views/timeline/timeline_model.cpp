// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/timeline/timeline_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace stepscope {
namespace {

constexpr std::size_t kFan = 4;

void addLevels(TimelineRow& row) {
  const auto join = [](SliceGroup& into, const SliceGroup& part, std::array<std::int64_t, 256>& busy) {
    into.end = std::max(into.end, part.end);
    into.busy += part.busy;
    into.last = part.last;
    busy[part.category] += part.busy;
    if (busy[part.category] > busy[into.category]) into.category = part.category;
  };
  std::vector<SliceGroup> below;
  below.reserve(row.slices.size());
  for (std::size_t i = 0; i < row.slices.size(); ++i) {
    const TimelineSlice& s = row.slices[i];
    below.push_back({s.begin, s.end, s.end - s.begin, static_cast<int>(i), static_cast<int>(i) + 1, s.category});
  }
  while (below.size() > 64) {
    std::vector<SliceGroup> level;
    for (std::size_t i = 0; i < below.size(); i += kFan) {
      SliceGroup group = below[i];
      std::array<std::int64_t, 256> busy{};
      busy[group.category] = group.busy;
      for (std::size_t k = i + 1; k < std::min(below.size(), i + kFan); ++k) join(group, below[k], busy);
      level.push_back(group);
    }
    row.levels.push_back(level);
    below = std::move(level);
  }
}

// For each instruction of a plan the one of another that does the same: of the same name and phase, where one alone has it;
// else -1.
std::vector<int> counterpartsOf(const PlanSnapshot& plan, const PlanSnapshot& in) {
  using Key = std::tuple<int, std::string, std::string>;
  const auto keyOf = [](const snapshot::Instruction& i) { return Key(i.phase(), i.op(), i.label()); };
  const auto placesOf = [&keyOf](const PlanSnapshot& p) {
    std::map<Key, int> places;  // -1: several have it
    for (const auto& i : p.plan().instructions())
      if (const auto [at, isNew] = places.emplace(keyOf(i), i.index()); !isNew) at->second = -1;
    return places;
  };
  const std::map<Key, int> here = placesOf(plan), there = placesOf(in);
  std::vector<int> found;
  for (const auto& i : plan.plan().instructions()) {
    const auto at = there.find(keyOf(i));
    found.push_back(at == there.end() || here.at(keyOf(i)) < 0 ? -1 : at->second);
  }
  return found;
}

// The instruction of a node that is called so; -1 where none or several are.
int instructionCalled(const PlanSnapshot& plan, const std::string& node) {
  int found = -1;
  for (const auto& in : plan.plan().instructions()) {
    if (!in.label().ends_with(" '" + node + '\'')) continue;  // "stepscope.AllReduce 'node'"
    if (found >= 0) return -1;
    found = in.index();
  }
  return found;
}

}  // namespace

std::shared_ptr<const TimelineModel> TimelineModel::make(const StepPtrs& steps, std::shared_ptr<const PlanSnapshot> plan,
                                                         std::shared_ptr<const GraphSnapshot> graph, std::size_t most) {
  std::vector<RanStep> ran;
  for (const auto& step : steps) ran.push_back({step, plan, graph});
  return make(ran, std::move(plan), most);
}

std::shared_ptr<const TimelineModel> TimelineModel::make(const std::vector<RanStep>& steps,
                                                         std::shared_ptr<const PlanSnapshot> present, std::size_t most) {
  auto model = std::make_shared<TimelineModel>();
  model->categories_.emplace_back("other");
  std::map<std::string, std::uint8_t> known{{"other", 0}};
  const auto categoryCalled = [&](const std::string& name) -> std::uint8_t {
    const auto [at, fresh] = known.emplace(name, static_cast<std::uint8_t>(model->categories_.size()));
    if (fresh) {
      if (model->categories_.size() >= 255) return at->second = 0;
      model->categories_.push_back(name);
    }
    return at->second;
  };
  const auto categoryOf = [&](const GraphSnapshot* graph, int nodeId) -> std::uint8_t {
    const snapshot::Node* node = graph ? graph->node(nodeId) : nullptr;
    if (node != nullptr && node->phase() == snapshot::BACKWARD) {
      if (const snapshot::Node* forward = graph->node(graph->forwardOf(nodeId))) node = forward;
    }
    return node == nullptr ? 0 : categoryCalled(node->category());
  };
  std::vector<const RanStep*> used;
  for (auto it = steps.rbegin(); it != steps.rend() && used.size() < most; ++it) {
    if (it->record && (it->record->spans_size() > 0 || it->ranks)) used.push_back(&*it);
  }
  std::reverse(used.begin(), used.end());
  std::map<const PlanSnapshot*, std::vector<int>> counterparts;
  using Kind = TimelineRow::Kind;
  std::map<std::tuple<int, Kind, int, int>, TimelineRow> rows;  // by rank first
  const auto rowOf = [&rows](int rank, Kind kind, int thread, int phase) -> TimelineRow& {
    TimelineRow& row = rows[{rank, kind, thread, phase}];
    row.kind = kind;
    row.rank = rank;
    row.thread = thread;
    row.phase = static_cast<snapshot::Phase>(phase);
    return row;
  };
  std::map<std::pair<const PlanSnapshot*, std::string>, int> collectives;  // their instructions
  bool first = true;
  for (const RanStep* ran : used) {
    const snapshot::StepRecord* record = ran->record.get();
    const PlanSnapshot* plan = ran->plan.get();
    const int step = static_cast<int>(model->steps_.size());
    const bool other = ran->plan != present;
    if (other && plan && present && !counterparts.contains(plan)) counterparts[plan] = counterpartsOf(*plan, *present);
    const auto shown = [&](int own) {  // in the plan that is shown
      if (!other) return own;
      const auto found = counterparts.find(plan);
      return found == counterparts.end() || own < 0 || own >= static_cast<int>(found->second.size())
                 ? -1
                 : found->second[static_cast<std::size_t>(own)];
    };
    TimelineStep entry{.step = record->step(),
                       .begin = record->begin_ns(),
                       .end = record->begin_ns() + std::max<std::int64_t>(0, record->ns()),
                       .loss = record->loss(),
                       .hasLoss = record->has_loss(),
                       .warmUp = record->warm_up(),
                       .stopped = ran->stopped,
                       .other = other,
                       .plan = ran->plan};
    const auto addSpan = [&](int rank, const snapshot::InstructionSpan& span) {
      if (span.end_ns() < span.begin_ns()) return;  // a clock that went backwards says nothing
      const snapshot::Instruction* in = plan ? plan->instruction(span.instruction()) : nullptr;
      rowOf(rank, Kind::kInstructions, span.thread(), in != nullptr ? in->phase() : snapshot::FORWARD)
          .slices.push_back({span.begin_ns(), span.end_ns(), shown(span.instruction()), span.instruction(), step, -1, -1,
                             categoryOf(ran->graph.get(), span.node())});
      entry.begin = std::min(entry.begin, span.begin_ns());
      entry.end = std::max(entry.end, span.end_ns());
    };
    for (const auto& span : record->spans()) addSpan(0, span);
    static const snapshot::StepRanks kNone;
    for (const snapshot::RankStep& rank : (ran->ranks ? *ran->ranks : kNone).ranks()) {
      if (rank.rank() < 0) continue;
      model->ranks_ = std::max(model->ranks_, rank.rank() + 1);
      for (const auto& span : rank.spans()) addSpan(rank.rank(), span);
      for (const snapshot::RankCollective& collective : rank.collectives()) {
        if (collective.begin_ns() <= 0) continue;  // when it was is not known
        const int exchange = static_cast<int>(model->exchanges_.size());
        model->exchanges_.push_back({collective, rank.rank(), step});
        const auto [place, unknown] = collectives.try_emplace({plan, collective.node()}, -1);
        if (unknown && plan) place->second = instructionCalled(*plan, collective.node());
        const int own = place->second;
        const std::int64_t met = collective.begin_ns() + std::max<std::int64_t>(0, collective.wait_ns()),
                           end = met + std::max<std::int64_t>(0, collective.move_ns());
        model->waitingCategory_ = categoryCalled("waiting");
        TimelineRow& row = rowOf(rank.rank(), Kind::kCollectives, 0, 0);
        row.slices.push_back({collective.begin_ns(), met, shown(own), own, step, -1, exchange,
                              static_cast<std::uint8_t>(model->waitingCategory_)});
        row.slices.push_back({met, end, shown(own), own, step, -1, exchange, categoryCalled("movement")});
        entry.begin = std::min(entry.begin, collective.begin_ns());
        entry.end = std::max(entry.end, end);
      }
    }
    const snapshot::DeviceWork& device = record->device();
    entry.device.set_rung(device.rung());
    entry.device.set_rung_reason(device.rung_reason());
    entry.device.set_counted(device.counted());
    entry.device.set_uncounted(device.uncounted());
    entry.device.set_lost(device.lost());
    for (const auto& made : device.records()) {
      if (made.end_ns() < made.begin_ns()) continue;
      const int work = static_cast<int>(model->work_.size());
      const snapshot::Instruction* in = plan ? plan->instruction(made.instruction()) : nullptr;
      const bool waits =
                     made.kind() == snapshot::DeviceRecord::STREAM_WAIT || made.kind() == snapshot::DeviceRecord::HOST_WAIT,
                 overhead = made.kind() == snapshot::DeviceRecord::OVERHEAD;
      if (waits) model->waitingCategory_ = categoryCalled("waiting");
      const std::uint8_t category = waits ? static_cast<std::uint8_t>(model->waitingCategory_)
                                          : categoryOf(ran->graph.get(), in != nullptr ? in->node() : -1);
      TimelineWork& of = model->work_.emplace_back();
      of.record = made;
      if (made.kernel() >= 0 && made.kernel() < device.kernels_size()) of.kernel = device.kernels(made.kernel());
      of.step = step;
      of.instruction = shown(made.instruction());
      of.own = made.instruction();
      const auto put = [&, instruction = of.instruction](Kind kind, int number, std::int64_t begin, std::int64_t end) {
        rowOf(0, kind, number, 0).slices.push_back({begin, end, instruction, made.instruction(), step, work, -1, category});
        entry.begin = std::min(entry.begin, begin);
        entry.end = std::max(entry.end, end);
      };
      if (of.onStream() && made.called_ns() > 0 && made.returned_ns() >= made.called_ns())
        put(Kind::kCalls, 0, made.called_ns(), made.returned_ns());
      put(waits      ? Kind::kWaits
          : overhead ? Kind::kOverhead
                     : Kind::kStream,
          of.onStream() ? made.stream() : 0, made.begin_ns(), made.end_ns());
    }
    model->begin_ = first ? entry.begin : std::min(model->begin_, entry.begin);
    model->end_ = first ? entry.end : std::max(model->end_, entry.end);
    first = false;
    model->steps_.push_back(entry);
  }
  model->end_ = std::max(model->end_, model->begin_ + 1);
  for (auto& [key, row] : rows) {
    std::stable_sort(row.slices.begin(), row.slices.end(),
                     [](const TimelineSlice& a, const TimelineSlice& b) { return a.begin < b.begin; });
    // Overlapping spans of one row would hide each other: the earlier one is cut.
    for (std::size_t i = 0; i + 1 < row.slices.size(); ++i)
      row.slices[i].end = std::min(row.slices[i].end, row.slices[i + 1].begin);
    model->count_ += static_cast<std::int64_t>(row.slices.size());
    addLevels(row);
    const int at = static_cast<int>(model->rows_.size());
    for (std::size_t i = 0; i < row.slices.size(); ++i) {
      if (row.slices[i].work < 0) continue;
      TimelineWork& work = model->work_[static_cast<std::size_t>(row.slices[i].work)];
      (row.kind == Kind::kCalls ? work.callRow : work.row) = at;
      (row.kind == Kind::kCalls ? work.callSlice : work.slice) = static_cast<int>(i);
    }
    model->rows_.push_back(std::move(row));
  }
  model->axis_ = TimelineAxis(model->findCuts());
  const auto ofPresent = std::find_if(model->steps_.begin(), model->steps_.end(), [](const auto& s) { return !s.other; });
  model->presentBegin_ = ofPresent == model->steps_.end() ? model->begin_ : ofPresent->begin;
  return model;
}

std::vector<TimelineCut> TimelineModel::findCuts() {
  using Kind = TimelineRow::Kind;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  std::int64_t busy = 0;
  for (const TimelineRow& row : rows_) {
    const bool works = row.kind != Kind::kCollectives && row.kind != Kind::kWaits && row.kind != Kind::kOverhead;
    for (const TimelineSlice& s : row.slices) {
      spans.emplace_back(s.begin, s.end);
      if (works) busy += s.end - s.begin;
    }
  }
  std::sort(spans.begin(), spans.end());
  std::vector<std::int64_t> borders;
  for (const TimelineStep& step : steps_) borders.insert(borders.end(), {step.begin, step.end});
  std::sort(borders.begin(), borders.end());
  std::vector<TimelineCut> cuts;
  // Within one step, or between two.
  const auto idle = [&](std::int64_t from, std::int64_t to) {
    if (to - from <= kShortestCut) return;
    TimelineCut cut{from, to, -1, false};
    bool beside = false;  // a step in which somebody stopped
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const TimelineStep& step = steps_[i];
      if (step.begin <= from && to <= step.end) cut.step = static_cast<int>(i);
      beside = beside || (step.stopped && step.begin <= to && from <= step.end);
    }
    cut.stopped = cut.step >= 0 && steps_[static_cast<std::size_t>(cut.step)].stopped;
    if (!(cut.step < 0 ? beside : cut.stopped) && to - from <= busy) return;
    if (cut.step >= 0) steps_[static_cast<std::size_t>(cut.step)].waiting += to - from;
    cuts.push_back(cut);
  };
  const auto nothingRan = [&](std::int64_t from, std::int64_t to) {
    if (to - from <= kShortestCut) return;
    for (auto border = std::upper_bound(borders.begin(), borders.end(), from); border != borders.end() && *border < to;
         from = *border++)
      idle(from, *border);
    idle(from, to);
  };
  std::int64_t reached = begin_;
  for (const auto& [begin, end] : spans) {
    nothingRan(reached, begin);
    reached = std::max(reached, end);
  }
  nothingRan(reached, end_);
  return cuts;
}

int TimelineModel::at(const TimelineRow& row, std::int64_t ns) const {
  auto it = std::upper_bound(row.slices.begin(), row.slices.end(), ns,
                             [](std::int64_t v, const TimelineSlice& s) { return v < s.begin; });
  if (it == row.slices.begin()) return -1;
  --it;
  return ns <= it->end ? static_cast<int>(it - row.slices.begin()) : -1;
}

bool TimelineModel::find(int instruction, int* row, int* slice) const {
  int best = -1;
  if (instruction < 0) return false;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (rows_[r].kind != TimelineRow::Kind::kInstructions) continue;
    for (std::size_t i = rows_[r].slices.size(); i-- > 0;) {
      const TimelineSlice& s = rows_[r].slices[i];
      if (s.instruction != instruction || s.step <= best) continue;
      best = s.step;
      *row = static_cast<int>(r);
      *slice = static_cast<int>(i);
      break;
    }
  }
  return best >= 0;
}

const snapshot::Instruction* TimelineModel::ran(int step, int own) const {
  const auto& plan = steps_[static_cast<std::size_t>(step)].plan;
  return plan ? plan->instruction(own) : nullptr;
}

int TimelineModel::others() const {
  return static_cast<int>(std::count_if(steps_.begin(), steps_.end(), [](const TimelineStep& s) { return s.other; }));
}

std::vector<int> TimelineModel::workOf(int instruction) const {
  std::vector<int> found;
  if (instruction < 0) return found;
  for (std::size_t i = work_.size(); i-- > 0;) {
    if (work_[i].instruction != instruction) continue;
    if (!found.empty() && work_[i].step != work_[static_cast<std::size_t>(found.front())].step) break;
    found.push_back(static_cast<int>(i));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace stepscope
