// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/snapshot_store.h"

#include <QDateTime>
#include <algorithm>
#include <iterator>
#include <utility>

#include "views/common/chosen_step.h"
#include "views/common/counted_steps.h"
#include "views/common/findings.h"
#include "views/common/pass_stages.h"
#include "views/common/project_reads.h"
#include "views/common/pytorch_times.h"
#include "views/common/rank_times.h"
#include "views/common/run_times.h"
#include "views/common/running.h"
#include "views/common/step_plans.h"
#include "views/common/worker_host.h"

namespace stepscope {
namespace {
constexpr std::size_t kLogLimit = 100'000;
constexpr std::size_t kAlertLimit = 10'000;
constexpr std::int64_t kTensorCacheBytes = 256LL << 20;
constexpr std::size_t kRecords = 1024;  // of the newest steps
constexpr std::size_t kSampled = 512;   // of older ones that recorded statistics
constexpr std::size_t kWatched = 256;   // of older ones that have those of watched values alone
constexpr std::size_t kMostRecords = 2 * kRecords + kSampled;
constexpr std::size_t kWithSpans = 64;
const Timing kNever;
}  // namespace

SnapshotStore::SnapshotStore(QObject* parent)
    : QObject(parent), project_(new ProjectFacts(this)), findings_(new Findings(this)) {
  new RunTimes(project_);
  new ProjectReads(project_);
  new PyTorchTimes(project_);
  new RankTimes(project_);
  new Running(this);
  new WorkerHost(this);
  new PassStages(this);
  new StepPlans(this);
  new ChosenStep(this);
}

GraphPtr SnapshotStore::graphOf(const QString& stage) const {
  const auto it = stageGraphs_.find(stage);
  return it == stageGraphs_.end() ? nullptr : it->second;
}

const Timing& SnapshotStore::timing(int instruction) const {
  if (instruction < 0 || instruction >= static_cast<int>(timings_.size())) return kNever;
  return timings_[static_cast<std::size_t>(instruction)];
}

bool SnapshotStore::ranInThisStep(int instruction) const {
  return position_.in_step() && instruction < position_.instruction();
}

const snapshot::Determinism* SnapshotStore::determinism(int node) const {
  const auto it = determinism_.find(node);
  return it == determinism_.end() ? nullptr : &determinismList_[static_cast<std::size_t>(it->second)];
}

TensorPtr SnapshotStore::tensor(int value) const {
  const auto it = tensors_.find(value);
  return it == tensors_.end() ? nullptr : it->second;
}

const snapshot::TensorStatistics* SnapshotStore::statistics(int value) const {
  const auto it = statistics_.find(value);
  return it == statistics_.end() ? nullptr : &it->second.statistics;
}

std::int64_t SnapshotStore::statisticsStep(int value) const {
  const auto it = statistics_.find(value);
  return it == statistics_.end() ? -1 : it->second.step;
}

void SnapshotStore::clear() {
  graph_ = nullptr;
  stageGraphs_.clear();
  stages_.clear();
  plan_ = nullptr;
  model_ = nullptr;
  phases_.clear();
  alerts_.clear();
  breakpoints_.clear();
  steps_.clear();
  series_.clear();
  StepPlans::of(*this).clear();
  position_.Clear();
  timings_.clear();
  determinismList_.clear();
  determinism_.clear();
  comparison_ = nullptr;
  tensors_.clear();
  statistics_.clear();
  watched_.clear();
  pinned_.clear();
  options_.clear();
  findings_->clear();
  emit modelChanged();
  emit stagesChanged();
  emit graphChanged();
  emit planChanged();
  emit phasesChanged();
  emit alertsChanged();
  emit breakpointsChanged();
  PyTorchTimes::of(*project_).set({});
  RankTimes::of(*project_).set({}, {});
  emit stepsChanged();
  emit positionChanged();
  emit determinismChanged();
  emit comparisonChanged();
  emit watchedChanged();
  emit pinnedChanged();
  emit optionsChanged();
}

void SnapshotStore::setModel(ModelPtr model) {
  model_ = std::move(model);
  emit modelChanged();
}

void SnapshotStore::setMachine(MachinePtr machine) {
  machine_ = std::move(machine);
  emit machineChanged();
}

void SnapshotStore::setStages(QStringList stages) {
  stages_ = std::move(stages);
  stageGraphs_.clear();
  emit stagesChanged();
}

void SnapshotStore::setGraph(GraphPtr graph) {
  graph_ = std::move(graph);
  tensors_.clear();
  statistics_.clear();
  determinismList_.clear();
  determinism_.clear();
  comparison_ = nullptr;
  if (graph_) stageGraphs_[QString::fromStdString(graph_->graph().phase())] = graph_;
  emit graphChanged();
  emit determinismChanged();
  emit comparisonChanged();
}

void SnapshotStore::addStage(const QString& stage, GraphPtr graph) {
  stageGraphs_[stage] = std::move(graph);
  emit stageArrived(stage);
}

void SnapshotStore::setPlan(PlanPtr plan) {
  plan_ = std::move(plan);
  StepPlans::of(*this).planIsRead();
  timings_.assign(plan_ ? static_cast<std::size_t>(plan_->size()) : 0, Timing());
  if (const auto* newest = newestOfPlan(*this)) takeSpans(newest->spans(), newest->step());
  emit planChanged();
}

void SnapshotStore::setPhases(std::vector<snapshot::PhaseSpan> phases) {
  phases_ = std::move(phases);
  emit phasesChanged();
}

void SnapshotStore::setOptions(std::vector<snapshot::Option> options) {
  options_ = std::move(options);
  emit optionsChanged();
}

void SnapshotStore::setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints) {
  breakpoints_ = std::move(breakpoints);
  emit breakpointsChanged();
}

void SnapshotStore::takeSpans(const google::protobuf::RepeatedPtrField<snapshot::InstructionSpan>& spans,
                              std::int64_t step) {
  for (const auto& span : spans) {
    if (span.instruction() < 0 || span.instruction() >= static_cast<int>(timings_.size())) continue;
    const std::int64_t ns = span.end_ns() >= span.begin_ns() ? span.end_ns() - span.begin_ns() : 0;
    timings_[static_cast<std::size_t>(span.instruction())] = {span.begin_ns(), ns, step, span.thread()};
  }
}

void SnapshotStore::setPosition(const snapshot::Position& position) {
  position_ = position;
  takeSpans(position_.spans(), position_.step());
  for (const auto& watched : position_.watched()) {
    if (watched.has_statistics()) statistics_[watched.value()] = {watched.statistics(), watched.step()};
  }
  emit positionChanged();
}

void SnapshotStore::addStep(StepPtr step) {
  StepPlans& plans = StepPlans::of(*this);
  plans.ran(*step);
  if (plans.underPresent(*step)) takeSpans(step->spans(), step->step());
  series_.add(*step);
  const auto place = std::lower_bound(steps_.begin(), steps_.end(), step->step(),
                                      [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
  if (place != steps_.end() && (*place)->step() == step->step()) {
    *place = std::move(step);
  } else {
    steps_.insert(place, std::move(step));
  }
  if (steps_.size() > kWithSpans) {
    StepPtr& old = steps_[steps_.size() - kWithSpans - 1];
    if (old->spans_size() > 0) {
      auto slim = std::make_shared<snapshot::StepRecord>(*old);
      google::protobuf::RepeatedPtrField<snapshot::InstructionSpan>().Swap(slim->mutable_spans());  // and their memory
      slim->clear_device();
      old = std::move(slim);
    }
  }
  if (!readOnly_ && steps_.size() >= kMostRecords) thinOut();
  stepsTold_.request();
}

void SnapshotStore::setSteps(StepSeries series, std::vector<StepPtr> records) {
  series_ = std::move(series);
  steps_ = std::move(records);
  for (const StepPtr& step : steps_)
    if (StepPlans::of(*this).underPresent(*step)) takeSpans(step->spans(), step->step());
  stepsTold_.request();
}

// Of older steps only those stay that recorded statistics, and of those fewer the more there are. Steps that have those of
// watched values alone, as every step may, are counted for themselves.
void SnapshotStore::thinOut() {
  const auto sampled = [](const StepPtr& s) {
    return std::any_of(s->statistics().begin(), s->statistics().end(), [](const auto& v) { return v.kind() != "watched"; });
  };
  std::vector<StepPtr> kept;
  std::copy_if(steps_.begin(), steps_.end() - kRecords, std::back_inserter(kept),
               [](const StepPtr& s) { return s->statistics_size() > 0; });
  for (const bool few : {true, false}) {
    const auto counts = [&](const StepPtr& s) { return sampled(s) == few; };
    while (std::count_if(kept.begin(), kept.end(), counts) > static_cast<std::ptrdiff_t>(few ? kSampled : kWatched)) {
      std::size_t place = 0;
      std::erase_if(kept, [&](const StepPtr& s) { return counts(s) && place++ % 2 == 1; });
    }
  }
  kept.insert(kept.end(), steps_.end() - kRecords, steps_.end());
  steps_ = std::move(kept);
}

void SnapshotStore::takeBackFrom(std::int64_t step) {
  std::erase_if(steps_, [step](const StepPtr& s) { return s->step() >= step; });
  series_.dropFrom(step);
  StepPlans::of(*this).takeBackFrom(step);
  std::erase_if(tensors_, [step](const auto& t) { return t.second->step() >= step; });
  std::erase_if(statistics_, [step](const auto& s) { return s.second.step >= step; });
  for (Timing& t : timings_)
    if (t.step >= step) t = Timing();
  if (const auto* newest = newestOfPlan(*this)) takeSpans(newest->spans(), newest->step());
  comparison_ = nullptr;
  findings_->takeBackFrom(step);
  // A worker tells them again when the steps run again. A file that was changed stays so.
  if (std::erase_if(alerts_, [step](const auto& a) { return a.step() >= step && a.code() != "file_changed"; }) > 0)
    emit alertsChanged();
  emit stepsChanged();
  emit positionChanged();
  emit comparisonChanged();
  emit stepsTakenBack();
}

void SnapshotStore::restoreSteps(const std::vector<StepPtr>& records) {
  for (const StepPtr& record : records) {
    if (!std::binary_search(series_.step().begin(), series_.step().end(), record->step())) continue;
    const auto place = std::lower_bound(steps_.begin(), steps_.end(), record->step(),
                                        [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
    if (place == steps_.end() || (*place)->step() != record->step())
      steps_.insert(place, record);
    else if ((*place)->spans_size() == 0)
      *place = record;
    else
      continue;
    if (steps_.back() == record && StepPlans::of(*this).underPresent(*record)) takeSpans(record->spans(), record->step());
  }
  stepsTold_.request();
}

void SnapshotStore::setReadingSteps(bool reading) {
  if (std::exchange(readingSteps_, reading) != reading) stepsTold_.request();
}

void SnapshotStore::addAlert(const snapshot::Alert& alert) {
  if (alerts_.size() >= kAlertLimit) alerts_.erase(alerts_.begin());
  alerts_.push_back(alert);
  emit alertsChanged();
}

void SnapshotStore::clearAlerts() {
  alerts_.clear();
  emit alertsChanged();
}

void SnapshotStore::addLog(LogLine line) {
  if (line.ms < 0) line.ms = QDateTime::currentMSecsSinceEpoch();
  if (log_.size() >= kLogLimit) {
    log_.pop_front();
    ++logDropped_;
  }
  log_.push_back(std::move(line));
  emit logChanged();
}

void SnapshotStore::setDeterminism(std::vector<snapshot::Determinism> nodes) {
  determinismList_ = std::move(nodes);
  determinism_.clear();
  for (std::size_t i = 0; i < determinismList_.size(); ++i) {
    determinism_.emplace(determinismList_[i].node(), static_cast<int>(i));
  }
  emit determinismChanged();
}

void SnapshotStore::setComparison(std::shared_ptr<const snapshot::CompareReply> comparison) {
  comparison_ = std::move(comparison);
  emit comparisonChanged();
}

void SnapshotStore::addTensor(TensorPtr tensor) {
  const int value = tensor->value();
  if (tensor->has_statistics()) statistics_[value] = {tensor->statistics(), tensor->step()};
  tensors_[value] = std::move(tensor);
  // The cache is bounded; what falls out is fetched again when it is looked at.
  std::int64_t bytes = 0;
  for (const auto& [id, cached] : tensors_) bytes += static_cast<std::int64_t>(cached->data().size());
  for (auto it = tensors_.begin(); bytes > kTensorCacheBytes && it != tensors_.end();) {
    if (it->first == value) {
      ++it;
      continue;
    }
    bytes -= static_cast<std::int64_t>(it->second->data().size());
    it = tensors_.erase(it);
  }
  emit tensorArrived(value);
}

void SnapshotStore::setWatched(std::vector<int> values) {
  watched_ = std::move(values);
  emit watchedChanged();
}

void SnapshotStore::setPinned(std::vector<int> values) {
  pinned_ = std::move(values);
  emit pinnedChanged();
}

void SnapshotStore::setWorkerState(WorkerState state, const QString& text) {
  if (state == workerState_ && text == workerText_) return;
  workerState_ = state;
  workerText_ = text;
  emit workerChanged();
}

void SnapshotStore::setBuilding(bool building) {
  if (building == building_) return;
  building_ = building;
  emit buildingChanged();
}

void SnapshotStore::setReadOnly(bool readOnly) {
  if (readOnly == readOnly_) return;
  readOnly_ = readOnly;
  emit workerChanged();
}

}  // namespace stepscope
