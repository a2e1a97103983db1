// SPDX-License-Identifier: GPL-3.0-or-later
// One open model in the worker: turns wishes and actions into requests, and answers into facts in the store.
//
// Every function returns at once. While a request runs, further steps are refused with a note, never queued: what the user
// sees is what the next key acts on.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QThreadPool>
#include <functional>
#include <optional>

#include "app/workbench/build_trace.h"
#include "app/workbench/scratch_folder.h"
#include "app/workbench/state_ring.h"
#include "app/workbench/worker_client.h"
#include "views/common/findings.h"
#include "views/common/selection.h"
#include "views/common/snapshot_store.h"
#include "views/common/wishes.h"

namespace stepscope {

struct ElementEdit {
  int value = -1;
  std::vector<qint64> index;
  double before = 0, after = 0;
};
using OptionSettings = std::vector<std::pair<QString, QString>>;  // names and values
void addSettings(const OptionSettings& settings, snapshot::Configure& to);

class Session : public QObject {
  Q_OBJECT

 public:
  Session(SnapshotStore& store, SelectionModel& selection, QObject* parent = nullptr);

  WorkerClient& client() { return client_; }
  const QString& modelPath() const { return path_; }
  const snapshot::Configure& configuration() const { return configuration_; }
  bool built() const { return built_; }
  bool busy() const { return busy_; }  // a request that moves the session runs
  bool running() const { return running_; }
  bool working() const;  // anything runs that pause() ends
  // The step that a run ends before; 0: it runs until something stops it.
  std::int64_t goal() const { return running_ && training_ && !everyValue_ ? trainGoal_.value_or(0) : 0; }
  bool comingBack() const {
    return returnTo_.has_value();
  }                                                // a new worker takes the place of the one that had built the model
  bool edited() const { return !edits_.empty(); }  // values were set by hand in this session

  // Starts the worker when there is none and reads the model; modelInspected, notRead or problem follows. What runs is
  // stopped. What is open stays until the model was read.
  void inspect(const QString& path, const QString& missingWeights);
  // Configures the inspected model and builds it; built or problem follows.
  void build(const snapshot::Configure& configuration);
  // inspect, then build with these settings.
  void openAndBuild(const QString& path, const snapshot::Configure& configuration, const QString& missingWeights = {});
  // The model that is built anew, with its settings, breakpoints and watches, from the parameters of the file.
  void newRun();
  void close();
  void restart();                          // kills what is there; the plan that was shown, same step and instruction
  void buildWithout(const QString& pass);  // restart, and build what died with pass.NAME=off: after buildDied

  void run(bool backwards);
  void step(int count);  // negative: back
  void stepPhase(bool backwards);
  void finishStep();
  void runTo(int instruction);
  void abandon();
  // To the state before the step: one that is kept, else the newest one before it, from which the steps between run again.
  void rewind(std::int64_t step) { rewindThen(step, {}); }
  // In this step or an earlier one, behind the instruction that is selected; -1: before the step.
  void goTo(std::int64_t step, int instruction);
  void train(std::int64_t steps);
  void pause();

  void setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints);
  void toggleBreakpoint(int instruction);
  void fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent);
  void watch(int value, bool on);
  void watchAll(const std::vector<int>& values);
  void pin(int value, bool on);
  void editTensor(int value, const std::vector<qint64>& index, double number, bool fill);
  // How it ended stands in the findings. An edit that is to be taken back later is told by elementEdited().
  void editElement(int value, const std::vector<qint64>& index, double number, double before, bool undoable = true);
  void loadTensor(int value, const QString& path);       // a .npy file of the worker's machine
  void compareWithFile(int value, const QString& path);  // the answer stands in the findings
  void compareWithValue(int value, int other);
  void keepTensor(int value);
  void rowLosses();
  // As one change; in the middle of a step for the next one. While something runs they wait: a run takes them before its
  // next step.
  void setOptions(const OptionSettings& settings);
  void recompute(bool whatIf, const QString& plan, qint64 budget);  // the answer stands in the findings
  void studyPrecision(const QString& precision);                    // likewise
  void tryOptions(const snapshot::GetTrials& question);             // likewise; pause() ends it with what was measured
  void compareWithCapture();                                        // likewise; what differs are alerts too
  void determinism();
  void compareBits();
  void stageGraph(const QString& stage);
  void saveTensor(int value, const QString& path);
  void saveState(const QString& path);

 signals:
  void modelInspected();
  void notRead(const stepscope::ModelPtr& model);  // a file that is no sound model: its problems; what was open is still
  void builtChanged();
  void busyChanged();
  void problem(const QString& text, const QString& code);  // code: of the worker, or "worker_died"
  // After problem(): these settings do not build. `setting` is the one at fault, empty when none is known. A model that was
  // built before is built again as it was, and is where it was.
  void buildRefused(const stepscope::snapshot::Configure& configuration, const QString& text, const QString& setting);
  void buildDied(const stepscope::BuildDeath& death);  // instead of problem(): the worker died while it built
  void note(const QString& text);
  void progress(const QString& what, qint64 done, qint64 total);
  void stepRecorded(const stepscope::StepPtr& step, bool walked);  // walked: not at full speed
  void watchedRead(const stepscope::snapshot::TensorData& value);  // at a stop, with its statistics
  void phasesTold();  // of a build that the store now shows; those of the first build come with builtChanged()
  void elementEdited(const stepscope::ElementEdit& edit);
  void optionsTried();                         // the findings have the trials
  void planResumed(const QString& signature);  // an earlier one runs again; the store shows its phases
  void planShown();                            // graph, plan and options of the one that runs again were fetched
  void planRebuilt();                          // graph, plan and options of the newest build were fetched again
  // A new worker stands at step `from`: to repeat the steps up to `step` would take that long. train() does.
  void longRepeat(qint64 from, qint64 step, double ns);
  void alertRaised(const stepscope::snapshot::Alert& alert);
  // A breakpoint ended a run: why, and the instruction whose values were the reason, which is selected; -1 when it is the
  // place.
  void brokeAt(const QString& reason, int instruction);

 private:
  using Then = std::function<void()>;
  struct Edit {
    std::int64_t step = 0;
    int instruction = -1;  // -1: between steps
    snapshot::Request request;
    std::optional<double> before = {};  // of an element
  };
  // Edits of the step that goes on under another plan get the ids that their values have there.
  void moveEdits(const std::shared_ptr<const GraphSnapshot>& before);
  struct Opening {  // a file that is read; what is open stays until it was
    QString path, missingWeights, pathBefore, missingWeightsBefore;
    ModelPtr model = nullptr;
    std::vector<snapshot::Alert> alerts = {};
  };
  struct Stops {  // of the step that is begun
    int count = 0, first = 0;
    std::vector<std::string> breaks;  // each reason once
  };

  // Sends a request that moves the session: marks it busy, absorbs every answer, calls `then` after a good end. When it made
  // another plan, that is fetched before. `refused` takes an error that is shown elsewhere than above the window.
  void move(snapshot::Request request, const QString& what, Then then = {}, Then failed = {},
            std::function<void(const QString&)> refused = {});
  // Sends one that only reads, of the model that is open: when another one has taken its place, the answer is dropped.
  void request(snapshot::Request request, const QString& what, WorkerClient::Callback callback, bool quiet = true);
  void ask(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer, bool quiet = true);
  // Sends one that leaves the session as it is and takes a while: marks it busy until the last answer.
  void study(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer);
  void absorb(const Delivery& delivery);
  // And remembers it, for a worker that has to come back. `before`: of an element.
  void edit(snapshot::Request request, std::optional<double> before = {}, Then then = {},
            std::function<void(const QString&)> refused = {});
  void read(const Opening& opening);
  void look();
  void leave();  // what is open
  void buildFailed(const snapshot::Configure& before, const std::optional<snapshot::Position>& place, const QString& why);
  void reopen(bool wasBuilt);  // what is open, in a worker that does not know it
  void compare(snapshot::Request request, const QString& with);
  void reached(const snapshot::Position& position);
  void tellOfDeath(const QString& reason);             // of the worker
  void tellOfBuildDeath(const QString& reason);        // of one that was building
  void startAgain(bool build);                         // kills what is there
  bool told(const snapshot::Alert& alert) const;       // it stands among those that are shown
  std::vector<snapshot::Alert> captureAlerts() const;  // what differs from PyTorch, or why it is not known
  void setBusy(bool busy);
  bool refuse();
  void inStep(Then then);  // begins a step when none is begun
  void refreshBuild(Then then);
  void runOn();
  // The selection follows the new position: what ran last and made; the next one and what it reads, where the step begins,
  // breaks, or was asked to stop. A selection beside the place that was asked for stays.
  void stopped(std::optional<int> asked = {});
  void tellOfHand(std::int64_t step);  // what was done by hand in a step that is recorded: its edits and stops, as alerts
  static bool takesBack(const Edit& later, const Edit& earlier);  // an element is again what it was
  void unfinished();
  void rewindThen(std::int64_t step, Then then);
  void repeatTo(std::int64_t step, Then there);  // from the newest state before it
  void settle(Then then);                        // reads the position after a step was committed
  void comeBack();                               // to where the worker was that died
  double stepNs() const;                         // of the steps that are shown, at full speed; 0: none is
  // On from where the worker stands to the goal, edits from this one on included; nothing of it is recorded again.
  void replay(const snapshot::Position& goal, std::size_t edit, const Then& then = {});
  void loadKept(const StateRing::State& state, const Then& then);
  void keepState();  // into the ring
  qint64 keepEveryMs() const;
  void begin(const Then& then);
  void replaceWorker(Then then);        // kills the one that is there
  void sendOptions(Then then);          // those that wait
  void trainOn(std::int64_t goal);      // up to this step
  bool breaksOnNumbersOnly() const;     // no other breakpoint has to be watched
  void trainAtOnce(std::int64_t goal);  // with nothing of a step left to finish

  SnapshotStore& store_;
  SelectionModel& selection_;
  WorkerClient client_;
  QString path_;
  QString missingWeights_;
  snapshot::Configure configuration_;
  snapshot::Configure shownWith_;                // of the plan that is shown
  std::optional<snapshot::Configure> diedWith_;  // of the build that its worker died of
  bool built_ = false;
  bool building_ = false;  // by a request of its own
  QString refusal_;        // why the newest build failed
  QString fault_;          // the setting that the newest error names
  bool busy_ = false;
  bool running_ = false;
  bool optionsTouched_ = false;  // some wait for the next step
  OptionSettings waiting_;       // not sent yet: a request that moves the session runs
  OptionSettings sent_;          // and not answered
  // Those of the worker, where others are shown in advance.
  std::optional<std::vector<snapshot::Option>> optionsBefore_;
  bool training_ = false;                  // at full speed
  bool everyValue_ = false;                // and every value is looked at
  QElapsedTimer sinceChunk_;               // of steps at full speed was asked for
  std::int64_t chunk_ = 1;                 // steps of one request at full speed
  bool interrupted_ = false;               // it is cancelled to send them, and goes on
  std::optional<std::int64_t> trainGoal_;  // up to this step at full speed; stays when the worker dies, to go on
  enum class Other { kNone, kResumed, kRebuilt };
  Other rebuilt_ = Other::kNone;  // the worker runs another plan than the one that the store has
  bool restarting_ = false;       // the user replaces the worker
  bool replaying_ = false;
  StateRing ring_;
  BuildTrace trace_;
  QElapsedTimer sinceKept_;
  qint64 keepMs_ = 0;        // that keeping the newest state took
  std::vector<Edit> edits_;  // in the order they were made
  Stops stops_;
  int nextBreakpoint_ = 1;
  ScratchFolder scratch_;  // kept contents, and copies of the files that edits came from
  int copies_ = 0;
  std::optional<snapshot::Position> returnTo_;
  std::optional<Opening> opening_;
  std::optional<Opening> wanted_;                            // as soon as what runs has stopped
  std::optional<std::pair<std::int64_t, int>> wantedPlace_;  // the same
  int opened_ = 0;                                           // models so far
  bool askingRecompute_ = false;
  std::optional<RecomputeAnswer> nextRecompute_;
  QThreadPool files_;  // last: waits for its threads before the rest goes
};

}  // namespace stepscope
