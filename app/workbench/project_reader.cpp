// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_reader.h"

#include <map>
#include <set>

#include "app/workbench/comparison_reader.h"
#include "app/workbench/ledger_record.h"
#include "app/workbench/project_steps.h"
#include "app/workbench/pytorch_trace.h"
#include "engine/snapshot/alert.h"
#include "storage/queries.h"
#include "storage/rank_steps.h"
#include "storage/sql.h"
#include "storage/timing.h"
#include "storage/trials.h"
#include "storage/verdicts.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/run_times.h"

namespace stepscope {
namespace {

// What the views look at; the rest stays in the file.
constexpr std::int64_t kMostWatched = 2'000;
constexpr std::size_t kMostRunsWithSettings = 200;  // the newest

// Of the options those that some run of the list does not have as they are by themselves.
std::vector<RunEntry> entries(const storage::Project& project, const std::vector<storage::RunRow>& rows) {
  std::vector<RunEntry> out;
  std::set<std::string> set;
  std::vector<std::vector<storage::OptionRow>> options;
  for (const auto& r : rows) {
    out.push_back(runEntry(r));
    const bool looks = rows.size() - out.size() < kMostRunsWithSettings;
    options.push_back(looks ? storage::readOptions(project, r.id).value_or(std::vector<storage::OptionRow>())
                            : std::vector<storage::OptionRow>());
    for (const auto& option : options.back())
      if (option.value != option.defaultValue) set.insert(option.name);
  }
  for (std::size_t run = 0; run < out.size(); ++run)
    for (const auto& option : options[run])
      if (set.contains(option.name))
        out[run].settings[QString::fromStdString(option.name)] = QString::fromStdString(option.value);
  return out;
}

std::map<std::int64_t, RunStepTimes> timesOfRuns(const storage::Project& project) {
  std::map<std::int64_t, RunStepTimes> out;
  if (const auto times = storage::readStepTimes(project))
    for (const auto& [run, t] : *times) out[run] = stepTimes(t, t.kind);
  return out;
}

RankTimes::Table ranksOf(const storage::Project& project, std::int64_t run) {
  RankTimes::Table out;
  const auto report = storage::readRanks(project, run);
  if (!report) return out;
  for (const storage::RankRow& r : report->ranks)
    out.ranks.push_back({r.rank, r.steps, r.last, r.ns, r.exposedNs, r.waitNs, r.moveNs, r.sentBytes, r.plannedSentBytes,
                         r.peakBytes, r.plannedBytes, r.stateBytes});
  for (const storage::RankCollectiveRow& c : report->collectives)
    out.collectives.push_back(
        {QString::fromStdString(c.node), c.meanWaitNs, c.worstWaitNs, c.moveNs, c.exposedNs, c.sentBytes, c.last});
  return out;
}

// The newest that is known of each value stands for it; contents are there for the inputs of a batch alone.
void showValues(const ProjectContents& contents, SnapshotStore& store) {
  std::map<int, std::shared_ptr<snapshot::TensorData>> values;
  const auto at = [&values](int value, const std::string& name, std::int64_t step) {
    auto data = std::make_shared<snapshot::TensorData>();
    data->set_value(value);
    data->set_name(name);
    data->set_step(step);
    data->set_unavailable("a recorded project keeps statistics of it, not its contents");
    values[value] = data;
    return data;
  };
  for (const StepPtr& step : contents.steps) {
    for (const auto& s : step->statistics()) *at(s.value(), s.name(), step->step())->mutable_statistics() = s.statistics();
    for (const auto& input : step->inputs()) {
      const auto data = at(input.value(), input.name(), step->step());
      data->MergeFrom(input);
      if (!input.data().empty()) data->clear_unavailable();
    }
  }
  for (const auto& w : contents.watched) *at(w.value, w.name, w.step)->mutable_statistics() = w.statistics;
  for (auto& [value, data] : values) {
    const auto* known = store.graph() ? store.graph()->value(value) : nullptr;
    if (!known || QString::fromStdString(known->name()) != QString::fromStdString(data->name()))
      continue;  // of another build
    if (data->dims_size() == 0)
      for (const std::string& dim : known->dims()) data->add_dims(QString::fromStdString(dim).toLongLong());
    if (data->dtype().empty()) data->set_dtype(known->dtype());
    store.addTensor(std::move(data));
  }
}

// Parts that cannot be read stay empty, which is no answer where it was because reading was stopped.
storage::Status whole(const storage::Project& project) {
  if (!project.stopped()) return {};
  return storage::fail(storage::ErrorCode::kCancelled, "project '" + project.path() + "': reading was cancelled");
}

}  // namespace

storage::Result<std::vector<RunEntry>> readRuns(const QString& path, std::map<std::int64_t, RunStepTimes>* times,
                                                std::optional<std::int64_t> liveBefore, const std::atomic<bool>* stop) {
  SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString(), stop));
  SS_STORE_ASSIGN(const storage::Standing live, standingOf(project, liveBefore));
  SS_STORE_ASSIGN(const auto rows, storage::listRuns(project, live));
  if (times) *times = timesOfRuns(project);
  auto found = entries(project, rows);
  SS_STORE_TRY(whole(project));
  return found;
}

storage::Result<GraphPtr> readStageGraph(const QString& path, std::int64_t run, const QString& stage) {
  SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString()));
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(project));
  }
  SS_STORE_ASSIGN(auto graph, storage::readGraph(project, run, stage.toStdString()));
  return GraphSnapshot::make(std::move(graph));
}

storage::Result<ProjectContents> readProject(const QString& path, std::int64_t run, const std::atomic<bool>* stop) {
  SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString(), stop));
  ProjectContents out;
  for (const std::string& warning : project.warnings()) out.warnings << format::visible(warning);
  out.damaged = project.damaged();
  SS_STORE_ASSIGN(const auto runs, storage::listRuns(project));
  out.runs = entries(project, runs);
  out.times = timesOfRuns(project);
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(project));
  }
  if (auto model = storage::readModel(project, run))
    out.model = std::make_shared<const snapshot::ModelInfo>(std::move(*model));
  if (auto machine = storage::readMachine(project, run))
    out.machine = std::make_shared<const snapshot::MachineInfo>(std::move(*machine));
  if (auto graph = storage::readGraph(project, run)) out.graph = GraphSnapshot::make(std::move(*graph));
  if (const auto graphs = storage::listGraphs(project, run); graphs && !graphs->empty()) {
    for (const auto& g : *graphs)
      if (g.build == graphs->back().build) out.stages << QString::fromStdString(g.phase);
  }
  if (auto verdicts = storage::readDeterminism(project, run)) out.determinism = std::move(*verdicts);
  if (auto plan = storage::readPlan(project, run)) out.plan = PlanSnapshot::make(std::move(*plan));
  if (const auto options = storage::readOptions(project, run)) {
    for (const auto& o : *options) {
      snapshot::Option& option = out.options.emplace_back();
      option.set_name(o.name);
      option.set_value(o.value);
      option.set_default_value(o.defaultValue);
      option.set_set_by(o.setBy);
      option.set_doc(o.doc);
      option.set_effect(o.effect);
      for (const auto& c : o.choices) option.add_choices(c);
    }
  }
  if (const auto phases = storage::readPhases(project, run)) {
    std::map<std::int64_t, int> place;
    for (const auto& p : *phases) {
      place[p.id] = static_cast<int>(out.phases.size());
      snapshot::PhaseSpan& span = out.phases.emplace_back();
      span.set_name(p.name);
      span.set_depth(p.depth);
      span.set_parent(p.parent && place.contains(*p.parent) ? place[*p.parent] : -1);
      span.set_begin_ns(p.beginNs);
      span.set_ns(p.ns);
      span.set_peak_bytes(p.peakBytes);
      span.set_count(p.count);
      span.set_error(p.error);
    }
    if (const auto passes = storage::readPasses(project, run)) {
      for (const auto& p : *passes) {
        const auto it = place.find(p.phase);
        if (it == place.end()) continue;
        auto* pass = out.phases[static_cast<std::size_t>(it->second)].mutable_pass();
        pass->set_name(p.name);
        pass->set_matches(static_cast<int>(p.matches));
        pass->set_nodes_before(p.nodesBefore);
        pass->set_nodes_after(p.nodesAfter);
        if (!p.notes.empty()) pass->add_notes(p.notes);
        for (const auto& miss : p.nearMisses) {
          auto* m = pass->add_near_misses();
          m->set_node(miss.node);
          m->set_condition(miss.condition);
        }
      }
    }
  }
  if (const auto alerts = storage::readAlerts(project, run)) {
    for (const auto& a : *alerts) {
      snapshot::Alert& alert = out.alerts.emplace_back(makeAlert(a.severity == "error"     ? snapshot::Alert::ERROR
                                                                 : a.severity == "warning" ? snapshot::Alert::WARNING
                                                                                           : snapshot::Alert::INFO,
                                                                 a.code, a.message));
      alert.set_node(a.node);
      alert.set_value(a.value);
      alert.set_step(a.step);
      alert.set_instruction(a.instruction);
    }
  }
  if (auto trials = storage::readTrials(project, run))
    for (auto& trial : *trials) *out.trials.add_trials() = std::move(trial);
  out.ledger = readLedgerReport(project, run);
  out.pytorch = readPyTorchTimes(project, run);
  out.ranks = ranksOf(project, run);
  readSteps(project, run, {out.plan, out.graph}, out.series, out.steps, out.plans, out.rankSteps);
  if (auto watched = storage::readWatchedStatistics(project, run, kMostWatched)) out.watched = std::move(*watched);
  SS_STORE_TRY(whole(project));
  return out;
}

void show(const ProjectContents& contents, SnapshotStore& store) {
  const auto breaks = store.breakpoints();  // for the next model: those that name no place are all that is left
  store.clear();
  store.setBreakpoints(breaks);
  store.setReadOnly(true);
  if (contents.machine) store.setMachine(contents.machine);
  store.setModel(contents.model);
  store.setPhases(contents.phases);
  store.setOptions(contents.options);
  if (contents.graph) {
    store.setStages(contents.stages);
    store.setGraph(contents.graph);
  }
  if (contents.plan) store.setPlan(contents.plan);
  store.setDeterminism(contents.determinism);
  for (const auto& alert : contents.alerts) store.addAlert(alert);
  for (const QString& warning : contents.warnings) {
    store.addAlert(
        makeAlert(contents.damaged ? snapshot::Alert::ERROR : snapshot::Alert::WARNING, "project", warning.toStdString()));
  }
  StepPlans::of(store).set(contents.plans);
  store.setSteps(contents.series, contents.steps);
  if (contents.trials.trials_size() > 0) store.findings().trials().showRecorded(contents.trials);
  if (contents.ledger) store.findings().ledger().showRecorded(contents.ledger);
  PyTorchTimes::of(store.project()).set(contents.pytorch);
  showValues(contents, store);
  RankTimes::of(store.project()).set(contents.ranks, contents.rankSteps);
  RunTimes::of(store.project()).set(contents.times);
  store.project().setRuns(contents.runs);
}

}  // namespace stepscope
