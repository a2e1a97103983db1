// SPDX-License-Identifier: GPL-3.0-or-later
// One open model in the worker: turns wishes and actions into requests, and answers into facts in the store.
//
// Every function returns at once. While a request runs, further steps are refused with a note, never queued: what the user
// sees is what the next key acts on. Breakpoints, watched and kept values and options are taken at any time: they are what
// is desired, and the worker is brought to it as soon as it can be.
#pragma once

#include "app/workbench/session/session_answers.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_inspector.h"
#include "app/workbench/session/session_lab.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_recovery.h"
#include "app/workbench/session/session_rewind.h"
#include "app/workbench/session/session_stepper.h"
#include "app/workbench/session/session_trainer.h"
#include "views/common/wishes.h"

namespace stepscope {

class ModelSession : public QObject {
  Q_OBJECT

 public:
  ModelSession(SnapshotStore& store, SelectionModel& selection, QObject* parent = nullptr);

  WorkerClient& client() { return link_.client(); }
  const WorkerClient& client() const { return link_.client(); }
  const QString& modelPath() const { return model_.path(); }
  const snapshot::Configure& configuration() const { return model_.configuration(); }
  const DesiredState& desired() const { return desires_.desired(); }
  // Another machine, or this one: what is open is left, and the worker there is started.
  void connectTo(const RemoteHost& host);
  bool built() const { return model_.built(); }
  const BuildTrace& buildTrace() const { return recovery_.trace(); }
  bool busy() const { return link_.busy(); }  // a request that moves the session runs
  bool running() const { return run_.on; }
  bool stepping() const { return stepper_.moving(); }  // a move by hand runs: others wait for their turn
  bool working() const { return link_.working(); }     // anything runs that pause() ends
  // The step that a run ends before; 0: it runs until something stops it.
  std::int64_t goal() const {
    const std::int64_t goal = atFullSpeed() ? run_.goal.value_or(0) : 0;
    return goal < kForever ? goal : 0;
  }
  // Of a script that drives: what it does itself is not asked of it. Null: a worker.
  const snapshot::AttachedScript* attached() const { return client().attached(); }
  // Without a look at any value: only records are kept.
  bool atFullSpeed() const { return run_.on && run_.fullSpeed && !run_.everyValue; }
  bool comingBack() const { return recovery_.comingBack(); }
  // What was there before is brought back: after another worker, a build that was cancelled, a step back in time.
  bool restoring() const { return comingBack() || rewind_.restoring(); }
  bool edited() const { return !edits_.all().empty(); }  // values were set by hand in this session
  std::vector<SessionEdits::Edit> editsOfStep() const { return edits_.ofStep(parts_.store.position().step()); }  // at hand

  // What each does says the part that does it.
  void inspect(const QString& path, const QString& missingWeights) { model_.inspect(path, missingWeights); }
  void build(const snapshot::Configure& configuration) { model_.build(configuration); }
  void openAndBuild(const QString& path, const snapshot::Configure& configuration, const QString& missingWeights = {}) {
    model_.openAndBuild(path, configuration, missingWeights);
  }
  void newRun() { model_.newRun(); }
  void newRun(const snapshot::Configure& configuration) { model_.newRun(configuration); }
  void close() { model_.close(); }
  void stageGraph(const QString& stage) { model_.stageGraph(stage); }
  void restart() { recovery_.restart(); }
  void buildWithout(const QString& pass) { recovery_.buildWithout(pass); }

  void run(bool backwards) { stepper_.run(backwards); }
  void step(int count) { stepper_.step(count); }
  void stepPhase(bool backwards) { stepper_.stepPhase(backwards); }
  void finishStep() { stepper_.finishStep(); }
  void runTo(int instruction) { stepper_.runTo(instruction); }
  void abandon() { stepper_.abandon(); }
  void rewind(std::int64_t step) { rewind_.rewindThen(step, {}); }
  void askRewindWays(const std::function<void(const RewindWays&)>& then) { rewind_.askWays(then); }
  void goTo(std::int64_t step, int instruction) { rewind_.goTo(step, instruction); }
  void takeUp(std::int64_t step, const QString& path, int instruction, const std::vector<SessionEdits::Edit>& edits) {
    rewind_.takeUp(step, path, instruction, edits);
  }
  void train(std::int64_t steps) { trainer_.train(steps); }
  void letRun() { trainer_.letRun(); }
  void pause() { trainer_.pause(); }
  // A run at full speed makes no further steps while this is true.
  void setHold(std::function<bool()> hold) { trainer_.setHold(std::move(hold)); }

  void setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints) { desires_.setBreakpoints(breakpoints); }
  void toggleBreakpoint(int instruction) { desires_.toggleBreakpoint(instruction); }
  void watch(int value, bool on) { desires_.watch(value, on); }
  void pin(int value, bool on) { desires_.pin(value, on); }
  void setOptions(const OptionSettings& settings) { desires_.setOptions(settings); }

  void fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent) {
    inspector_.fetchTensor(value, begin, extent);
  }
  void editTensor(int value, const std::vector<qint64>& index, double number, bool fill) {
    edits_.editTensor(value, index, number, fill);
  }
  void editElement(int value, const std::vector<qint64>& index, double number, double before, bool undoable = true) {
    edits_.editElement(value, index, number, before, undoable);
  }
  void loadTensor(int value, const QString& path) { edits_.loadTensor(value, path); }
  void compareWithFile(int value, const QString& path) { inspector_.compareWithFile(value, path); }
  void compareWithValue(int value, int other) { inspector_.compareWithValue(value, other); }
  void keepTensor(int value) { inspector_.keepTensor(value); }
  void rowLosses() { inspector_.rowLosses(); }
  void saveTensor(int value, const QString& path) { inspector_.saveTensor(value, path); }
  void saveState(const QString& path) { inspector_.saveState(path); }
  void saveState(const QString& path, std::function<void(bool saved)> then) { inspector_.saveState(path, std::move(then)); }

  void recompute(bool whatIf, const QString& plan, qint64 budget) { lab_.recompute(whatIf, plan, budget); }
  void studyPrecision(const QString& precision) { lab_.studyPrecision(precision); }
  void tryOptions(const snapshot::GetTrials& question) { lab_.tryOptions(question); }
  void measureLedger() { lab_.measureLedger(); }
  void planCapacity(const snapshot::GetCapacity& question) { lab_.planCapacity(question); }
  void bisect(const QString& file) { lab_.bisect(file); }
  void compareWithCapture() { lab_.compareWithCapture(); }
  void tellCaptureNotes() { lab_.tellCaptureNotes(); }
  void determinism() { lab_.determinism(); }
  void compareBits() { lab_.compareBits(); }

 signals:
  void hostChanged();  // its worker answers
  void modelInspected();
  void notRead(const stepscope::ModelPtr& model);  // a file that is no sound model: its problems; what was open is still
  void builtChanged();
  void busyChanged();
  void problem(const QString& text, const QString& code);  // code: of the worker, or "worker_died"
  // After problem(): these settings do not build. `setting` is the one at fault, empty when none is known. A model that was
  // built before is built again as it was, and is where it was.
  // `code`: of the error, as worker.proto names it.
  void buildRefused(const stepscope::snapshot::Configure& configuration, const QString& text, const QString& setting,
                    const QString& code);
  // Likewise, of a build of this model that a person cancelled, or that was to follow a look at it that was.
  void buildCancelled(const QString& path, const stepscope::snapshot::Configure& configuration);
  void buildDied(const stepscope::BuildDeath& death);  // instead of problem(): the worker died while it built
  void note(const QString& text);
  void progress(const QString& what, qint64 done, qint64 total);
  void stageBegan(const QString& name);  // a phase of the build, or a pass in one, of which buildTrace() knows now
  void stepRecorded(const stepscope::StepPtr& step, bool walked);  // walked: not at full speed
  void tookBack(qint64 step);  // a rewind: what was of this step and of later ones no longer stands
  void watchedRead(const stepscope::snapshot::TensorData& value);  // at a stop, with its statistics
  void phasesTold();  // of a build that the store now shows; those of the first build come with builtChanged()
  void elementEdited(const stepscope::ElementEdit& edit);
  void optionsTried();                         // the findings have the trials
  void ledgerMeasured();                       // likewise
  void planResumed(const QString& signature);  // an earlier one runs again; the store shows its phases
  void planShown();                            // graph, plan and options of the one that runs again were fetched
  void planRebuilt();                          // graph, plan and options of the newest build were fetched again
  // A new worker stands at step `from`: to repeat the steps up to `step` would take that long. train() does.
  void longRepeat(qint64 from, qint64 step, double ns);
  void optionsRefused(const stepscope::OptionSettings& settings);  // they stand as they did
  void alertRaised(const stepscope::snapshot::Alert& alert);
  void alertStands(const stepscope::snapshot::Alert& alert);  // raised before a rewind, and true again where the step is now
  // A breakpoint ended a run: why, and the instruction whose values were the reason, which is selected; -1 when it is the
  // place.
  void brokeAt(const QString& reason, int instruction);

 private:
  void workerDied(const QString& reason);
  void becameIdle();

  RemoteHost host_;  // whose worker came last
  RunNow run_;
  SessionParts parts_;  // of what follows
  SessionLink link_;
  SessionAnswers answers_;
  SessionDesires desires_;
  SessionModel model_;
  SessionStepper stepper_;
  SessionTrainer trainer_;
  SessionRewind rewind_;
  SessionRecovery recovery_;
  SessionInspector inspector_;
  SessionLab lab_;
  SessionEdits edits_;  // last: waits for its threads before the rest goes
};

}  // namespace stepscope
