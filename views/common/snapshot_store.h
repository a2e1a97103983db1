// SPDX-License-Identifier: GPL-3.0-or-later
// Everything the views show: the newest immutable snapshots and the growing lists of a run. The workbench writes it, views
// read it and follow its signals. GUI thread only; what it hands out as shared_ptr may be read on any thread.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "engine/snapshot/worker.pb.h"
#include "views/common/project_facts.h"
#include "views/common/signal_rate.h"
#include "views/common/snapshots.h"
#include "views/common/step_series.h"

namespace stepscope {

class Findings;

using GraphPtr = std::shared_ptr<const GraphSnapshot>;
using PlanPtr = std::shared_ptr<const PlanSnapshot>;
using ModelPtr = std::shared_ptr<const snapshot::ModelInfo>;
using MachinePtr = std::shared_ptr<const snapshot::MachineInfo>;
using StepPtr = std::shared_ptr<const snapshot::StepRecord>;
using TensorPtr = std::shared_ptr<const snapshot::TensorData>;

// What the worker is doing, in words a status bar can show.
enum class WorkerState {
  kNone,  // no model is open, or a recorded project is shown
  kStarting,
  kIdle,
  kBusy,          // a request runs
  kUnresponsive,  // a cancelled request has not ended, or nothing was heard for long
  kDead,          // it crashed or was killed; the last snapshots stay
};

// The last time an instruction ran.
struct Timing {
  std::int64_t beginNs = 0;
  std::int64_t ns = -1;    // -1: never
  std::int64_t step = -1;  // micro step in which it ran
  int thread = 0;
};

struct LogLine {
  QString level;         // "debug", "info", "warning", "error"
  QString text;          // hostile
  std::int64_t ms = -1;  // since 1970 by the clock of this machine; -1: when it is added
};

class SnapshotStore : public QObject {
  Q_OBJECT

 public:
  explicit SnapshotStore(QObject* parent = nullptr);

  // Files, runs and SQL answers; not of the open model.
  const ProjectFacts& project() const { return *project_; }
  ProjectFacts& project() { return *project_; }
  // Answers to single questions about the open model.
  const Findings& findings() const { return *findings_; }
  Findings& findings() { return *findings_; }

  // The newest graph (after the last phase), and those of other stages that were asked for.
  const GraphPtr& graph() const { return graph_; }
  GraphPtr graphOf(const QString& stage) const;
  const QStringList& stages() const { return stages_; }
  const PlanPtr& plan() const { return plan_; }
  const ModelPtr& model() const { return model_; }
  const MachinePtr& machine() const { return machine_; }
  const std::vector<snapshot::PhaseSpan>& phases() const { return phases_; }
  const std::vector<snapshot::Option>& options() const { return options_; }
  const std::vector<snapshot::Alert>& alerts() const { return alerts_; }
  const std::vector<snapshot::Breakpoint>& breakpoints() const { return breakpoints_; }
  // Records, ascending: the last 1,024 at least, and some older ones that recorded statistics or a batch; with spans the
  // last 64. The file has the others.
  const std::vector<StepPtr>& steps() const { return steps_; }
  bool readingSteps() const { return readingSteps_; }      // some of them are on their way from the file
  const StepSeries& series() const { return series_; }     // of all steps
  const std::deque<LogLine>& log() const { return log_; }  // the newest 100,000
  std::int64_t logDropped() const { return logDropped_; }
  const snapshot::Position& position() const { return position_; }
  const Timing& timing(int instruction) const;
  bool ranInThisStep(int instruction) const;                 // false outside a step
  const snapshot::Determinism* determinism(int node) const;  // nullptr until it was asked for
  const std::vector<snapshot::Determinism>& determinismList() const { return determinismList_; }
  const std::shared_ptr<const snapshot::CompareReply>& comparison() const { return comparison_; }
  TensorPtr tensor(int value) const;  // last fetched contents; nullptr
  const std::vector<int>& watched() const { return watched_; }
  const std::vector<int>& pinned() const { return pinned_; }
  const snapshot::TensorStatistics* statistics(int value) const;  // newest of any source; nullptr
  std::int64_t statisticsStep(int value) const;                   // micro step they are of; -1: there are none
  // The micro step whose values can be there now: between two steps the one before.
  std::int64_t presentStep() const { return position_.in_step() ? position_.step() : position_.step() - 1; }
  WorkerState workerState() const { return workerState_; }
  const QString& workerText() const { return workerText_; }  // "building: gradient", "exit code 139 …"
  bool building() const { return building_; }                // the first plan of the model, or another set-up of it
  bool readOnly() const { return readOnly_; }                // a recorded project without a worker

  // Written by the workbench only.
  void clear();
  void setModel(ModelPtr model);
  void setMachine(MachinePtr machine);
  void setStages(QStringList stages);
  void setGraph(GraphPtr graph);  // the newest; its stage name is in the message
  void addStage(const QString& stage, GraphPtr graph);
  void setPlan(PlanPtr plan);
  void setPhases(std::vector<snapshot::PhaseSpan> phases);
  void setOptions(std::vector<snapshot::Option> options);
  void setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints);
  void setPosition(const snapshot::Position& position);
  void addStep(StepPtr step);
  void setSteps(StepSeries series, std::vector<StepPtr> records);  // of a recorded run: both ascending
  void takeBackFrom(std::int64_t step);  // a rewind forgets these steps, and everything that was computed in them
  // Records of steps that stand, read from the file: where there is none, or one without times. Others are left out.
  void restoreSteps(const std::vector<StepPtr>& records);
  void setReadingSteps(bool reading);
  void addAlert(const snapshot::Alert& alert);
  void clearAlerts();
  void addLog(LogLine line);
  void setDeterminism(std::vector<snapshot::Determinism> nodes);
  void setComparison(std::shared_ptr<const snapshot::CompareReply> comparison);
  void addTensor(TensorPtr tensor);
  void setWatched(std::vector<int> values);
  void setPinned(std::vector<int> values);
  void setWorkerState(WorkerState state, const QString& text);
  void setReadOnly(bool readOnly);
  void setBuilding(bool building);

 signals:
  void modelChanged();
  void machineChanged();
  void stagesChanged();
  void graphChanged();  // graph() is another snapshot
  void stageArrived(const QString& stage);
  void planChanged();
  void phasesChanged();
  void optionsChanged();
  void alertsChanged();
  void breakpointsChanged();
  void stepsChanged();  // at most 30 times a second
  void stepsTakenBack();
  void logChanged();
  void positionChanged();  // position() or timings are new
  void determinismChanged();
  void comparisonChanged();
  void tensorArrived(int value);
  void watchedChanged();
  void pinnedChanged();
  void workerChanged();
  void buildingChanged();

 private:
  ProjectFacts* project_;
  Findings* findings_;
  GraphPtr graph_;
  std::map<QString, GraphPtr> stageGraphs_;
  QStringList stages_;
  PlanPtr plan_;
  ModelPtr model_;
  MachinePtr machine_;
  std::vector<snapshot::PhaseSpan> phases_;
  std::vector<snapshot::Option> options_;
  std::vector<snapshot::Alert> alerts_;
  std::vector<snapshot::Breakpoint> breakpoints_;
  std::vector<StepPtr> steps_;
  StepSeries series_;
  SignalRate stepsTold_{[this] { emit stepsChanged(); }};
  std::deque<LogLine> log_;
  std::int64_t logDropped_ = 0;
  snapshot::Position position_;
  std::vector<Timing> timings_;
  std::vector<snapshot::Determinism> determinismList_;
  std::unordered_map<int, int> determinism_;
  std::shared_ptr<const snapshot::CompareReply> comparison_;
  std::map<int, TensorPtr> tensors_;
  struct StatisticsOfStep {
    snapshot::TensorStatistics statistics;
    std::int64_t step = -1;
  };
  std::unordered_map<int, StatisticsOfStep> statistics_;
  std::vector<int> watched_;
  std::vector<int> pinned_;
  WorkerState workerState_ = WorkerState::kNone;
  QString workerText_;
  bool readOnly_ = false;
  bool building_ = false;
  bool readingSteps_ = false;

  void thinOut();
  void takeSpans(const google::protobuf::RepeatedPtrField<snapshot::InstructionSpan>& spans, std::int64_t step);
};

}  // namespace stepscope
