#include "engine/step/watched_values.h"

#include <algorithm>
#include <utility>

#include "engine/profile/tensor_data.h"
#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

// What an instruction computes, and not what is there all the time.
bool isComputed(const Graph& graph, ValueId id) { return graph.value(id).role == ValueRole::kNodeOutput; }

bool has(const Graph& graph, ValueId id) {
  return id && static_cast<std::size_t>(id.index) < graph.valueCapacity() && graph.alive(id);
}

}  // namespace

void WatchedValues::watch(const std::vector<ValueId>& values) {
  std::vector<Watched> before = std::exchange(all_, {});
  for (const ValueId value : values) {
    const auto known = std::ranges::find(before, value, &Watched::value);
    all_.push_back(known != before.end() ? *known : Watched{value, {}, {}});
  }
}

void WatchedValues::rename(const std::vector<ValueId>& values) {
  SS_CHECK(values.size() == all_.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (all_[i].value == values[i]) continue;
    all_[i].value = values[i];
    all_[i].running.reset();  // places in another plan are others
  }
}

void WatchedValues::begin(std::int64_t step) {
  drop();
  takeBackFrom(step);
  step_ = step;
  ns_ = 0;
}

void WatchedValues::after(const Executor& executor, int instruction, bool computed, bool walked) {
  const ExecutionPlan& plan = executor.plan();
  const Instruction& ran = plan.instructions[static_cast<std::size_t>(instruction)];
  if (!computed || ran.kind != InstructionKind::kKernel) return;
  for (const int b : ran.outputs) {
    if (b < 0) continue;
    const auto watched = std::ranges::find(all_, plan.buffers[static_cast<std::size_t>(b)].value, &Watched::value);
    if (watched == all_.end()) continue;
    const std::int64_t begin = monotonicNs();
    if (const auto contents = executor.read(watched->value))
      watched->running = Numbers{
          walked || histograms_ ? tensorStatistics(contents->view()) : tensorSummary(contents->view()), step_, instruction};
    ns_ += monotonicNs() - begin;
  }
}

void WatchedValues::note(const Executor& executor, ValueId value, const TensorView& contents, std::int64_t step, bool runs) {
  const auto watched = std::ranges::find(all_, value, &Watched::value);
  if (watched == all_.end() || !isComputed(executor.graph(), value)) return;
  const int instruction = executor.plan().instructionOf(executor.graph().value(value).producer);
  (runs ? watched->running : watched->committed) = Numbers{tensorStatistics(contents), step, instruction};
}

void WatchedValues::drop() {
  for (Watched& watched : all_) watched.running.reset();
}

void WatchedValues::takeBackFrom(std::int64_t step) {
  for (Watched& watched : all_)
    if (watched.committed && watched.committed->step >= step) watched.committed.reset();
}

void WatchedValues::commit(const Graph& graph, const std::function<Result<TensorView>(ValueId)>& read,
                           snapshot::StepRecord& record) {
  for (Watched& watched : all_) {
    if (!has(graph, watched.value)) continue;
    const Value& value = graph.value(watched.value);
    std::optional<snapshot::TensorStatistics> statistics;
    if (watched.running) {
      statistics = watched.running->statistics;
      watched.committed = std::exchange(watched.running, std::nullopt);
      watched.committed->step = record.step();  // calls of a script that lie within each other end in another order
    } else if (!isComputed(graph, watched.value)) {
      const std::int64_t begin = monotonicNs();
      if (const auto contents = read(watched.value)) statistics = tensorSummary(*contents);
      ns_ += monotonicNs() - begin;
    }
    if (!statistics) continue;
    statistics->clear_histogram();
    snapshot::RecordedStatistics& out = *record.add_statistics();
    out.set_kind("watched");
    out.set_of(toUtf8(value.name));
    out.set_value(watched.value.index);
    out.set_name(toUtf8(value.name));
    out.set_node(value.producer.index);
    *out.mutable_statistics() = std::move(*statistics);
  }
  record.set_recording_ns(record.recording_ns() + std::exchange(ns_, 0));
}

const WatchedValues::Numbers* WatchedValues::newest(const Watched& watched, int position) {
  if (watched.running && watched.running->instruction < position) return &*watched.running;
  return watched.committed ? &*watched.committed : nullptr;
}

}  // namespace stepscope
