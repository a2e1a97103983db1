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
  void openAndBuild(const QString& path, const snapshot::Configure& configuration);
  void close();
  void restart();  // kills what is there and returns to the same step and instruction

  void run(bool backwards);
  void step(int count);  // negative: back
  void stepPhase(bool backwards);
  void finishStep();
  void runTo(int instruction);
  void abandon();
  void rewind(std::int64_t step);
  void train(std::int64_t steps);
  void pause();

  void setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints);
  void toggleBreakpoint(int instruction);
  void fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent);
  void watch(int value, bool on);
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
  void note(const QString& text);
  void progress(const QString& what, qint64 done, qint64 total);
  void stepRecorded(const stepscope::StepPtr& step);
  void watchedRead(const stepscope::snapshot::TensorData& value);  // at a stop, with its statistics
  void phasesTold();  // of a build that the store now shows; those of the first build come with builtChanged()
  void elementEdited(const stepscope::ElementEdit& edit);
  void planResumed(const QString& signature);  // an earlier one runs again; the store shows its phases
  void planShown();                            // graph, plan and options of the one that runs again were fetched
  void planRebuilt();                          // graph, plan and options of the newest build were fetched again
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
  static constexpr std::int64_t kRingBytes = 1LL << 30;

  // Sends a request that moves the session: marks it busy, absorbs every answer, calls `then` after a good end. When it made
  // another plan, that is fetched before. `refused` takes an error that is shown elsewhere than above the window.
  void move(snapshot::Request request, const QString& what, Then then = {}, Then failed = {},
            std::function<void(const QString&)> refused = {});
  // Sends one that only reads, of the model that is open: when another one has taken its place, the answer is dropped.
  void request(snapshot::Request request, const QString& what, WorkerClient::Callback callback, bool quiet = true);
  void ask(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer, bool quiet = true);
  void absorb(const Delivery& delivery);
  // And remembers it, for a worker that has to come back. `before`: of an element.
  void edit(snapshot::Request request, std::optional<double> before = {}, Then then = {},
            std::function<void(const QString&)> refused = {});
  void read(const Opening& opening);
  void leave();                // what is open
  void reopen(bool wasBuilt);  // what is open, in a worker that does not know it
  void compare(snapshot::Request request, const QString& with);
  void reached(const snapshot::Position& position);
  bool told(const snapshot::Alert& alert) const;  // it stands among those that are shown
  void setBusy(bool busy);
  bool refuse();
  void inStep(Then then);  // begins a step when none is begun
  void refreshBuild(Then then);
  void runOn();
  // The selection follows the new position: what ran last and made; the next one and what it reads, where the step begins,
  // breaks, or was asked to stop. A selection beside the place that was asked for stays.
  void stopped(std::optional<int> asked = {});
  void tellOfNumber(bool nan, int instruction);  // that a run stopped at, as an alert
  void tellOfHand(std::int64_t step);  // what was done by hand in a step that is recorded: its edits and stops, as alerts
  static bool takesBack(const Edit& later, const Edit& earlier);  // an element is again what it was
  void unfinished();
  void settle(Then then);  // reads the position after a step was committed
  void comeBack();         // to where the worker was that died
  // On from where the worker stands to the goal, edits from this one on included; nothing of it is recorded again.
  void replay(const snapshot::Position& goal, std::size_t edit);
  void loadKept(const StateRing::State& state, const Then& then);
  void keepState();  // into the ring
  void begin(const Then& then);
  void replaceWorker(Then then);        // kills the one that is there
  void sendOptions(Then then);          // those that wait
  void trainOn(std::int64_t goal);      // up to this step
  void trainAtOnce(std::int64_t goal);  // with nothing of a step left to finish

  SnapshotStore& store_;
  SelectionModel& selection_;
  WorkerClient client_;
  QString path_;
  QString missingWeights_;
  snapshot::Configure configuration_;
  bool built_ = false;
  bool building_ = false;  // by a request of its own
  bool busy_ = false;
  bool running_ = false;
  bool optionsTouched_ = false;  // some wait for the next step
  OptionSettings waiting_;       // not sent yet: a request that moves the session runs
  bool training_ = false;        // at full speed, by one request
  bool interrupted_ = false;     // it is cancelled to send them, and goes on
  enum class Other { kNone, kResumed, kRebuilt };
  Other rebuilt_ = Other::kNone;  // the worker runs another plan than the one that the store has
  bool restarting_ = false;       // the user replaces the worker
  bool replaying_ = false;
  std::vector<snapshot::Alert> numbers_;  // alerts of this side
  StateRing ring_{kRingBytes};
  QElapsedTimer sinceKept_;
  std::vector<Edit> edits_;  // in the order they were made
  Stops stops_;
  int nextBreakpoint_ = 1;
  ScratchFolder scratch_;  // kept contents, and copies of the files that edits came from
  int copies_ = 0;
  std::optional<snapshot::Position> returnTo_;
  std::optional<Opening> opening_;
  std::optional<Opening> wanted_;  // as soon as what runs has stopped
  int opened_ = 0;                 // models so far
  bool askingRecompute_ = false;
  std::optional<RecomputeAnswer> nextRecompute_;
  QThreadPool files_;  // last: waits for its threads before the rest goes
};

}  // namespace stepscope
