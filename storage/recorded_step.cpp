#include "storage/recorded_step.h"

#include <fmt/format.h>

#include "storage/bounded.h"
#include "storage/step_facts.h"
#include "storage/timing.h"

namespace stepscope::storage {

snapshot::StepRecord recordOf(const StepRow& row) {
  snapshot::StepRecord record;
  record.set_step(row.step);
  record.set_has_loss(row.loss.has_value());
  record.set_loss(row.loss.value_or(0));
  record.set_learning_rate(row.learningRate);
  record.set_has_gradient_norm(row.gradientNorm.has_value());
  record.set_gradient_norm(row.gradientNorm.value_or(0));
  record.set_updated(row.updated);
  record.set_samples(row.samples);
  record.set_tokens(row.tokens);
  record.set_begin_ns(row.beginNs);
  record.set_ns(row.ns);
  record.set_planned_bytes(row.plannedBytes);
  record.set_peak_bytes(row.peakBytes);
  record.set_batch(row.batch);
  record.set_recording_ns(row.recordingNs);
  record.set_cpu_ns(row.cpuNs);
  record.set_wait_ns(row.waitNs);
  record.set_warm_up(row.warmUp);
  return record;
}

Status readTimesOf(const Project& project, std::int64_t stepId, snapshot::StepRecord& record) {
  SS_STORE_ASSIGN(const std::vector<Span> spans, readSpans(project, stepId));
  SS_STORE_ASSIGN(snapshot::DeviceWork device, readDeviceWork(project, stepId));
  record.mutable_spans()->Reserve(static_cast<int>(spans.size()));
  for (const Span& s : spans) {
    snapshot::InstructionSpan& span = *record.add_spans();
    span.set_instruction(s.instruction);
    span.set_node(s.node);
    span.set_begin_ns(s.beginNs);
    span.set_end_ns(saturatingAdd(s.beginNs, s.ns));
    span.set_thread(s.thread);
  }
  if (device.records_size() > 0) *record.mutable_device() = std::move(device);
  return {};
}

Result<snapshot::StepRecord> readRecordedStep(const Project& project, const StepRow& row, std::int64_t contentBytes) {
  snapshot::StepRecord record = recordOf(row);
  if (const Status read = readTimesOf(project, row.id, record); !read)
    return fail(read.error().code, fmt::format("step {}: its times cannot be read: {}", row.step, read.error().message));
  SS_STORE_TRY(readBatchFactsOf(project, row.id, contentBytes, record));
  return record;
}

Result<std::optional<snapshot::StepRecord>> readRecordedStep(const Project& project, std::int64_t run, std::int64_t step,
                                                             std::int64_t contentBytes) {
  SS_STORE_ASSIGN(const std::optional<StepRow> row, readStep(project, run, step));
  if (!row) return std::nullopt;
  SS_STORE_ASSIGN(snapshot::StepRecord record, readRecordedStep(project, *row, contentBytes));
  SS_STORE_ASSIGN(auto statistics, readStatisticsBetween(project, run, step, step));
  for (auto& each : statistics[step]) *record.add_statistics() = std::move(each);
  return record;
}

}  // namespace stepscope::storage
