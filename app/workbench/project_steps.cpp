// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_steps.h"

#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <utility>

#include "storage/graph_chain.h"
#include "storage/queries.h"
#include "storage/rank_steps.h"
#include "storage/recorded_step.h"
#include "storage/step_facts.h"

namespace stepscope {
namespace {

constexpr std::int64_t kNewest = 1024, kMostBatches = 500;
constexpr std::int64_t kBatchBytes = 64 << 20, kMostStatistics = 100'000;  // that are read
constexpr std::size_t kRunsLookedAt = 16;
constexpr std::size_t kMostOlder = 2500, kStepsWithSpans = 20;

// A step and its row in the file.
struct RecordedStep {
  std::int64_t id = 0;    // steps.id
  std::int64_t plan = 0;  // plans.id; 0: it is not known
  std::shared_ptr<snapshot::StepRecord> record;
};

// Plans of a run with the graphs of their builds, each read once.
class RecordedPlans {
 public:
  RecordedPlans(const storage::Project& project, std::int64_t run, const PlanOfStep& newest = {})
      : project_(project), run_(run) {
    if (const auto plans = storage::listPlans(project, run))
      for (const auto& plan : *plans) builds_[plan.id] = plan.build;
    if (newest.plan && !builds_.empty()) plans_[builds_.rbegin()->first] = newest;
  }

  PlanOfStep of(std::int64_t id) {
    const auto build = builds_.find(id);
    if (build == builds_.end()) return {};
    const auto [at, isNew] = plans_.try_emplace(id);
    if (!isNew) return at->second;
    if (auto plan = storage::readPlan(project_, run_, id)) at->second.plan = PlanSnapshot::make(std::move(*plan));
    GraphPtr& graph = graphs_[build->second];
    if (!graph)
      if (auto read = storage::readGraphOfBuild(project_, run_, {}, build->second))
        graph = GraphSnapshot::make(std::move(*read));
    at->second.graph = graph;
    return at->second;
  }

 private:
  const storage::Project& project_;
  std::int64_t run_;
  std::map<std::int64_t, int> builds_;  // of plans
  std::map<std::int64_t, PlanOfStep> plans_;
  std::map<int, GraphPtr> graphs_;  // by build
};

StepRanksPtr ranksOfStep(const storage::Project& project, std::int64_t stepId) {
  auto ranks = storage::readRanksOf(project, stepId);
  if (!ranks || ranks->ranks_size() == 0) return nullptr;
  return std::make_shared<const snapshot::StepRanks>(std::move(*ranks));
}

// Into the records of the newest of them.
void readSpans(const storage::Project& project, const std::vector<RecordedStep>& steps,
               std::map<std::int64_t, StepRanksPtr>& ranks) {
  for (std::size_t i = steps.size() > kStepsWithSpans ? steps.size() - kStepsWithSpans : 0; i < steps.size(); ++i) {
    if (!storage::readTimesOf(project, steps[i].id, *steps[i].record)) return;
    if (auto read = ranksOfStep(project, steps[i].id)) ranks[steps[i].record->step()] = std::move(read);
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

bool stands(const storage::StepRow& row, double loss) {
  const bool finite = row.loss && std::isfinite(*row.loss);
  return std::isfinite(loss) ? finite && *row.loss == loss : !finite;
}

// Of those that are there for their statistics alone every second goes: as in a live run, fewer the older they are.
void thinOut(std::vector<RecordedStep>& steps) {
  int place = 0;
  std::erase_if(steps, [&place](const RecordedStep& s) { return !hasBatch(*s.record) && place++ % 2 == 1; });
}

}  // namespace

storage::Result<StepPtr> readStepRecord(const storage::Project& project, std::int64_t run, std::int64_t step,
                                        PlanOfStep& under, StepRanksPtr& ranks) {
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(project));
  }
  SS_STORE_ASSIGN(auto record, storage::readRecordedStep(project, run, step, kBatchBytes));
  if (const auto row = storage::readStep(project, run, step); row && *row) {
    if ((*row)->plan) under = RecordedPlans(project, run).of(*(*row)->plan);
    ranks = ranksOfStep(project, (*row)->id);
  }
  return record ? std::make_shared<const snapshot::StepRecord>(std::move(*record)) : StepPtr();
}

std::vector<StepPtr> readStepRecords(const storage::Project& project, const std::vector<StandingStep>& steps,
                                     std::map<std::int64_t, PlanOfStep>& plans) {
  std::map<std::int64_t, double> missing;  // losses by step
  for (const StandingStep& step : steps) missing[step.step] = step.loss;
  std::map<std::int64_t, StepPtr> found;
  const auto runs = storage::listRunIds(project);
  if (!runs) return {};
  std::size_t looked = 0;
  for (auto run = runs->rbegin(); run != runs->rend() && looked < kRunsLookedAt && !missing.empty(); ++run, ++looked) {
    const std::int64_t first = missing.begin()->first, last = missing.rbegin()->first;
    auto rows = storage::readStepsBetween(project, *run, first, last);
    if (!rows) continue;
    std::erase_if(*rows, [&missing](const storage::StepRow& row) {
      const auto step = missing.find(row.step);
      return step == missing.end() || !stands(row, step->second);
    });
    if (rows->empty()) continue;
    auto statistics = storage::readStatisticsBetween(project, *run, rows->front().step, rows->back().step);
    RecordedPlans recorded(project, *run);
    for (const storage::StepRow& row : *rows) {
      auto record = storage::readRecordedStep(project, row, kBatchBytes);
      if (!record) continue;
      if (statistics)
        for (auto& each : (*statistics)[row.step]) *record->add_statistics() = std::move(each);
      if (record->spans_size() > 0 && row.plan) plans[row.step] = recorded.of(*row.plan);
      found[row.step] = std::make_shared<const snapshot::StepRecord>(std::move(*record));
      missing.erase(row.step);
    }
  }
  std::vector<StepPtr> out;
  for (auto& [step, record] : found) out.push_back(std::move(record));
  return out;
}

void readSteps(const storage::Project& project, std::int64_t run, const PlanOfStep& newest, StepSeries& series,
               std::vector<StepPtr>& records, std::map<std::int64_t, PlanOfStep>& plans,
               std::map<std::int64_t, StepRanksPtr>& ranks) {
  StepNotes notes(project, run);
  std::vector<RecordedStep> older;
  std::deque<RecordedStep> last;
  const auto read = storage::visitSteps(project, run, [&](const storage::StepRow& row) {
    auto record = std::make_shared<snapshot::StepRecord>(storage::recordOf(row));
    notes.addTo(*record, row.id);
    series.add(*record);
    last.push_back({row.id, row.plan.value_or(0), std::move(record)});
    if (last.size() <= static_cast<std::size_t>(kNewest)) return;
    const snapshot::StepRecord& leaves = *last.front().record;
    if (leaves.statistics_size() > 0 || hasBatch(leaves)) older.push_back(std::move(last.front()));
    last.pop_front();
    if (older.size() >= kMostOlder) thinOut(older);
  });
  if (!read) {
    series.clear();
    return;
  }
  older.insert(older.end(), std::make_move_iterator(last.begin()), std::make_move_iterator(last.end()));
  readSpans(project, older, ranks);
  RecordedPlans recorded(project, run, newest);
  for (RecordedStep& step : older) {
    if (step.plan != 0 && step.record->spans_size() > 0) plans[step.record->step()] = recorded.of(step.plan);
    records.push_back(std::move(step.record));
  }
}

}  // namespace stepscope
