// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_steps.h"

#include <deque>
#include <iterator>
#include <map>
#include <string>

#include "storage/queries.h"
#include "storage/sql.h"
#include "storage/step_facts.h"
#include "storage/timing.h"

namespace stepscope {
namespace {

constexpr std::int64_t kNewest = 1024, kMostBatches = 500;
constexpr std::int64_t kBatchBytes = 64 << 20, kMostStatistics = 100'000;  // that are read
constexpr std::size_t kMostOlder = 2500, kStepsWithSpans = 20;

// A step and its row in the file.
struct RecordedStep {
  std::int64_t id = 0;  // steps.id
  std::shared_ptr<snapshot::StepRecord> record;
};

std::int64_t number(const storage::SqlCell& cell) {
  const auto* n = std::get_if<std::int64_t>(&cell);
  return n ? *n : 0;
}

// Into the records of the newest of them.
void readSpans(const storage::Project& project, const std::vector<RecordedStep>& steps) {
  for (std::size_t i = steps.size() > kStepsWithSpans ? steps.size() - kStepsWithSpans : 0; i < steps.size(); ++i) {
    storage::SqlLimits limits;
    limits.rows = 200'000;
    const auto rows = storage::runSql(
        project, "SELECT instruction, node, begin_ns, ns, thread FROM spans WHERE step_id = " + std::to_string(steps[i].id),
        limits);
    if (!rows) return;
    for (const auto& row : rows->rows) {
      if (row.size() != 5) continue;
      snapshot::InstructionSpan& span = *steps[i].record->add_spans();
      span.set_instruction(static_cast<int>(number(row[0])));
      span.set_node(static_cast<int>(number(row[1])));
      span.set_begin_ns(number(row[2]));
      span.set_end_ns(number(row[2]) + number(row[3]));
      span.set_thread(static_cast<int>(number(row[4])));
    }
    if (auto device = storage::readDeviceWork(project, steps[i].id); device && device->records_size() > 0)
      *steps[i].record->mutable_device() = std::move(*device);
  }
}

// What steps noted of their numbers.
class StepNotes {
 public:
  StepNotes(const storage::Project& project, std::int64_t run)
      : densities_(storage::readDensities(project, run, kNewest)),
        batches_(storage::readBatches(project, run, kMostBatches, kBatchBytes)),
        losses_(storage::readRowLosses(project, run, kMostBatches)),
        statistics_(storage::readRecordedStatistics(project, run, kMostStatistics)) {}

  // Moves them there.
  void addTo(snapshot::StepRecord& record, std::int64_t id) {
    const auto add = [](auto& found, std::int64_t key, auto* target) {
      if (!found) return;
      if (const auto it = found->find(key); it != found->end()) {
        target->Reserve(static_cast<int>(it->second.size()));
        for (auto& each : it->second) *target->Add() = std::move(each);
        found->erase(it);
      }
    };
    add(densities_, id, record.mutable_densities());
    add(batches_, id, record.mutable_inputs());
    add(statistics_, record.step(), record.mutable_statistics());
    if (!losses_) return;
    if (const auto it = losses_->find(id); it != losses_->end()) *record.mutable_row_losses() = std::move(it->second);
  }

 private:
  storage::Result<std::map<std::int64_t, std::vector<snapshot::InputDensity>>> densities_;
  storage::Result<std::map<std::int64_t, std::vector<snapshot::TensorData>>> batches_;
  storage::Result<std::map<std::int64_t, snapshot::RowLosses>> losses_;
  storage::Result<std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>>> statistics_;
};

bool hasBatch(const snapshot::StepRecord& record) { return record.inputs_size() > 0 || record.has_row_losses(); }

// Of those that are there for their statistics alone every second goes: as in a live run, fewer the older they are.
void thinOut(std::vector<RecordedStep>& steps) {
  int place = 0;
  std::erase_if(steps, [&place](const RecordedStep& s) { return !hasBatch(*s.record) && place++ % 2 == 1; });
}

std::shared_ptr<snapshot::StepRecord> recordOf(const storage::StepRow& s) {
  auto record = std::make_shared<snapshot::StepRecord>();
  record->set_step(s.step);
  record->set_has_loss(s.loss.has_value());
  record->set_loss(s.loss.value_or(0));
  record->set_learning_rate(s.learningRate);
  record->set_has_gradient_norm(s.gradientNorm.has_value());
  record->set_gradient_norm(s.gradientNorm.value_or(0));
  record->set_updated(s.updated);
  record->set_samples(s.samples);
  record->set_tokens(s.tokens);
  record->set_begin_ns(s.beginNs);
  record->set_ns(s.ns);
  record->set_planned_bytes(s.plannedBytes);
  record->set_peak_bytes(s.peakBytes);
  record->set_batch(s.batch);
  record->set_recording_ns(s.recordingNs);
  record->set_cpu_ns(s.cpuNs);
  record->set_wait_ns(s.waitNs);
  record->set_warm_up(s.warmUp);
  return record;
}

}  // namespace

void readSteps(const storage::Project& project, std::int64_t run, StepSeries& series, std::vector<StepPtr>& records) {
  StepNotes notes(project, run);
  std::vector<RecordedStep> older;
  std::deque<RecordedStep> newest;
  const auto read = storage::visitSteps(project, run, false, [&](const storage::StepRow& row) {
    auto record = recordOf(row);
    notes.addTo(*record, row.id);
    series.add(*record);
    newest.push_back({row.id, std::move(record)});
    if (newest.size() <= static_cast<std::size_t>(kNewest)) return;
    const snapshot::StepRecord& leaves = *newest.front().record;
    if (leaves.statistics_size() > 0 || hasBatch(leaves)) older.push_back(std::move(newest.front()));
    newest.pop_front();
    if (older.size() >= kMostOlder) thinOut(older);
  });
  if (!read) {
    series.clear();
    return;
  }
  older.insert(older.end(), std::make_move_iterator(newest.begin()), std::make_move_iterator(newest.end()));
  readSpans(project, older);
  for (RecordedStep& step : older) records.push_back(std::move(step.record));
}

}  // namespace stepscope
