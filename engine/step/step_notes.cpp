#include "engine/step/step_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/profile/tensor_data.h"
#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/row_losses.h"

namespace stepscope {
namespace {

constexpr int kMostRows = 1 << 16;

// What the statistics of all elements times `factor` > 0 are.
void multiply(double factor, snapshot::TensorStatistics& statistics) {
  statistics.set_min(factor * statistics.min());
  statistics.set_max(factor * statistics.max());
  statistics.set_mean(factor * statistics.mean());
  statistics.set_std(factor * statistics.std());
  statistics.set_norm(factor * statistics.norm());
}

}  // namespace

Result<TensorView> contentsAt(const Executor& executor, ValueId id, int position) {
  const std::string reason = executor.unavailable(id, position);
  const Value& value = executor.graph().value(id);
  if (reason.empty()) {
    SS_ASSIGN(const Tensor contents, executor.read(id));
    return contents.view();
  }
  if (const auto contents = value.data.inMemory())
    return contents->view();  // folded constants, and state that no plan reads
  return fail(ErrorCode::kNotFound, fmt::format("value '{}': {}", value.name, reason));
}

NotePlan planNotes(const Executor& executor, const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients,
                   ValueId loss) {
  const Graph& graph = executor.graph();
  const ExecutionPlan& plan = executor.plan();
  NotePlan notes;
  const auto computed = [&](std::string kind, std::string of, ValueId id) {
    const Value& value = graph.value(id);
    if (!graph.alive(id) || !value.producer || !isFloating(value.type.dtype)) return;
    if (const int place = plan.instructionOf(value.producer); place >= 0)
      notes.after[place].push_back({std::move(kind), std::move(of), id, value.producer});
  };
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Value& parameter = graph.value(trained[i]);
    if (!graph.alive(parameter.id) || !isFloating(parameter.type.dtype)) continue;
    notes.parameters.push_back({"parameter", parameter.name, trained[i], {}});
    if (i < gradients.size() && gradients[i]) computed("gradient", parameter.name, gradients[i]);
  }
  std::map<std::string, ValueId> outputs;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.phase == Phase::kForward && !node.provenance.modulePath.empty() && node.output(0))
      outputs[std::string(node.provenance.modulePath)] = node.output(0);
  }
  for (const auto& [module, value] : outputs) computed("output", module, value);
  if (const Node* node = rowLossNode(graph, loss)) notes.rows = plan.instructionOf(node->id);
  return notes;
}

StepNotes::StepNotes(const TrainOptions& options)
    : batchSampler_(options.recordBatch, options.recordPercent / 200),  // half of it each
      statisticsSampler_(options.recordStatistics, options.recordPercent / 200),
      on_(options.record != "off"),
      contentBytes_(options.recordBatchBytes) {}

void StepNotes::begin(const Executor& executor, const NotePlan* plan, const Batch& batch, ValueId loss, std::int64_t step) {
  inputs_.clear();
  rowLosses_.Clear();
  found_.clear();
  batchNs_ = statisticsNs_ = 0;
  executor_ = &executor;
  plan_ = plan;
  loss_ = loss;
  step_ = step;
  batch_ = on_ && plan && batchSampler_.wants(step);
  rows_ = batch_ && plan->rows >= 0;
  statistics_ = on_ && plan && statisticsSampler_.wants(step);
  if (batch_) {
    const std::int64_t begin = monotonicNs();
    noteBatch(batch);
    batchNs_ += monotonicNs() - begin;
  }
  if (statistics_) {
    const std::int64_t begin = monotonicNs();
    for (const NotePlan::Place& place : plan->parameters) note(place, 0);
    statisticsNs_ += monotonicNs() - begin;
  }
}

void StepNotes::noteBatch(const Batch& batch) {
  const Graph& graph = executor_->graph();
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto array = batch.arrays.find(input.name);
    if (array == batch.arrays.end()) continue;
    const TensorView& view = array->second.view();
    snapshot::TensorData data;
    data.set_value(id.index);
    data.set_name(toUtf8(input.name));
    data.set_dtype(std::string(dtypeName(view.dtype)));
    for (const std::int64_t d : view.dims) data.add_dims(d);
    data.set_step(step_);
    if (view.dtype != DType::kString) {
      *data.mutable_statistics() = tensorSummary(view);
      addContents(view, {}, {}, contentBytes_ / static_cast<std::int64_t>(dtypeSize(view.dtype)), data);
    }
    inputs_.push_back(std::move(data));
  }
}

void StepNotes::note(const NotePlan::Place& place, int position) {
  const auto view = contentsAt(*executor_, place.value, position);
  if (!view) return;
  snapshot::RecordedStatistics& out = found_[place.value.index];
  out.set_kind(place.kind);
  out.set_of(toUtf8(place.of));
  out.set_value(place.value.index);
  out.set_name(toUtf8(executor_->graph().value(place.value).name));
  out.set_node(place.node.index);
  *out.mutable_statistics() = tensorSummary(*view);
  if (plan_->unscale && place.kind == "gradient")
    if (const auto factor = executor_->read(plan_->unscale))
      multiply(elementAsDouble(factor->view(), 0), *out.mutable_statistics());
}

void StepNotes::after(int index, bool computed) {
  if (!computed) return;
  if (statistics_) {
    if (const auto places = plan_->after.find(index); places != plan_->after.end()) {
      const std::int64_t begin = monotonicNs();
      for (const NotePlan::Place& place : places->second) note(place, index + 1);
      statisticsNs_ += monotonicNs() - begin;
    }
  }
  if (rows_ && index == plan_->rows) {
    const std::int64_t begin = monotonicNs();
    const auto read = [&](ValueId id) { return contentsAt(*executor_, id, index + 1); };
    rowLosses_ = rowLosses(executor_->graph(), loss_, read, [index](NodeId) { return index; });
    if (rowLosses_.values_size() > kMostRows) {
      const int rows = rowLosses_.values_size();
      rowLosses_.clear_values();
      rowLosses_.clear_ignored();
      rowLosses_.set_unavailable(fmt::format("{} rows; up to {} are recorded", rows, kMostRows));
    }
    rowLosses_.set_step(step_);
    batchNs_ += monotonicNs() - begin;
  }
}

void StepNotes::finish(snapshot::StepRecord& record) {
  batchSampler_.ran(batch_, record.ns(), batchNs_);
  statisticsSampler_.ran(statistics_, record.ns(), statisticsNs_);
  record.set_recording_ns(batchNs_ + statisticsNs_);
  for (snapshot::TensorData& input : inputs_) *record.add_inputs() = std::move(input);
  if (rowLosses_.values_size() > 0 || !rowLosses_.unavailable().empty())
    *record.mutable_row_losses() = std::move(rowLosses_);
  for (auto& [value, statistics] : found_) *record.add_statistics() = std::move(statistics);
  inputs_.clear();
  rowLosses_.Clear();
  found_.clear();
  batch_ = rows_ = statistics_ = false;
}

}  // namespace stepscope
