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

double real(const storage::SqlCell& cell) {
  const auto* x = std::get_if<double>(&cell);
  return x ? *x : static_cast<double>(number(cell));
}

// False where they cannot be read.
bool readSpansOf(const storage::Project& project, const RecordedStep& step) {
  storage::SqlLimits limits;
  limits.rows = 200'000;
  const auto rows = storage::runSql(
      project, "SELECT instruction, node, begin_ns, ns, thread FROM spans WHERE step_id = " + std::to_string(step.id),
      limits);
  if (!rows) return false;
  for (const auto& row : rows->rows) {
    if (row.size() != 5) continue;
    snapshot::InstructionSpan& span = *step.record->add_spans();
    span.set_instruction(static_cast<int>(number(row[0])));
    span.set_node(static_cast<int>(number(row[1])));
    span.set_begin_ns(number(row[2]));
    span.set_end_ns(number(row[2]) + number(row[3]));
    span.set_thread(static_cast<int>(number(row[4])));
  }
  if (auto device = storage::readDeviceWork(project, step.id); device && device->records_size() > 0)
    *step.record->mutable_device() = std::move(*device);
  return true;
}

// Of parameters, gradients and outputs. A file of a version before 3 has none.
storage::Status readStatisticsOf(const storage::Project& project, const std::string& which, snapshot::StepRecord& record) {
  if (project.schemaVersion() < 3) return {};
  SS_STORE_ASSIGN(
      const auto rows,
      storage::runSql(project,
                      "SELECT kind, subject, value, name, node, count, min, max, mean, std, zeros, negative, nan, inf, norm "
                      "FROM tensor_stats WHERE id IN (SELECT max(id) FROM tensor_stats" +
                          which + " AND kind != 'watched' GROUP BY value) ORDER BY id"));
  for (const auto& row : rows.rows) {
    snapshot::RecordedStatistics& r = *record.add_statistics();
    r.set_kind(storage::sqlCellText(row[0]));
    r.set_of(storage::sqlCellText(row[1]));
    r.set_value(static_cast<int>(number(row[2])));
    r.set_name(storage::sqlCellText(row[3]));
    r.set_node(static_cast<int>(number(row[4])));
    snapshot::TensorStatistics& s = *r.mutable_statistics();
    s.set_count(number(row[5]));
    s.set_min(real(row[6]));
    s.set_max(real(row[7]));
    s.set_mean(real(row[8]));
    s.set_std(real(row[9]));
    s.set_zeros(number(row[10]));
    s.set_negative(number(row[11]));
    s.set_nan(number(row[12]));
    s.set_inf(number(row[13]));
    s.set_norm(real(row[14]));
  }
  return {};
}

// Into the records of the newest of them.
void readSpans(const storage::Project& project, const std::vector<RecordedStep>& steps) {
  for (std::size_t i = steps.size() > kStepsWithSpans ? steps.size() - kStepsWithSpans : 0; i < steps.size(); ++i)
    if (!readSpansOf(project, steps[i])) return;
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

storage::Result<StepPtr> readStepRecord(const storage::Project& project, std::int64_t run, std::int64_t step) {
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(project));
  }
  const std::string which = " WHERE run = " + std::to_string(run) + " AND step = " + std::to_string(step);
  // A step that was executed again counts as last executed.
  SS_STORE_ASSIGN(const auto rows, storage::runSql(project,
                                                   "SELECT id, begin_ns, ns, loss, learning_rate, gradient_norm, "
                                                   "planned_bytes, peak_bytes, warm_up, batch FROM steps" +
                                                       which + " ORDER BY id DESC LIMIT 1"));
  if (rows.rows.empty()) return StepPtr();
  const auto& row = rows.rows.front();
  const RecordedStep found{number(row[0]), std::make_shared<snapshot::StepRecord>()};
  snapshot::StepRecord& record = *found.record;
  record.set_step(step);
  record.set_begin_ns(number(row[1]));
  record.set_ns(number(row[2]));
  record.set_has_loss(std::holds_alternative<double>(row[3]));
  record.set_loss(real(row[3]));
  record.set_learning_rate(real(row[4]));
  record.set_has_gradient_norm(std::holds_alternative<double>(row[5]));
  record.set_gradient_norm(real(row[5]));
  record.set_planned_bytes(number(row[6]));
  record.set_peak_bytes(number(row[7]));
  record.set_warm_up(number(row[8]) != 0);
  record.set_batch(storage::sqlCellText(row[9]));
  if (!readSpansOf(project, found))
    return storage::fail(storage::ErrorCode::kCorrupt, "step " + std::to_string(step) + ": its times cannot be read");
  SS_STORE_TRY(readStatisticsOf(project, which, record));
  return StepPtr(found.record);
}

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
