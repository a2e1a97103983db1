// SPDX-License-Identifier: GPL-3.0-or-later
// The project file as the window uses it: records the running session, opens recorded projects, deletes runs.
//
// On threads of its own (ProjectThreads). Answers come back as signals and facts in the store. Nothing here waits.
#pragma once

#include <QObject>
#include <QTimer>
#include <map>
#include <memory>

#include "app/workbench/cancellable_reads.h"
#include "app/workbench/earlier_steps.h"
#include "app/workbench/project_queries.h"
#include "app/workbench/project_threads.h"
#include "app/workbench/waiting_steps.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class ScratchFolder;

class Recording : public QObject {
  Q_OBJECT

 public:
  explicit Recording(SnapshotStore& store, QObject* parent = nullptr);
  ~Recording() override;  // commits what waits

  // A new run in this project, which is created when it is not there. A project that another window writes is left alone:
  // the run goes into a file next to it. Where nothing can be written it goes into a folder for temporary files, and stays
  // there.
  void begin(const QString& projectPath, storage::RunInfo info);
  // What the store holds of the newest build: first its phases, then graph, plan and options. What is read of it later
  // follows: the verdicts on its nodes, and the graphs of its phases before the last, from there to the first.
  void phases();
  void build();
  // The run that is recorded, or one of the project that is shown, its file opened for writing meanwhile. Else failed()
  // says why.
  void nameRun(qint64 run, const QString& name);
  // The newest build, but an earlier plan of this signature runs again.
  void planResumed(const QString& signature);
  void determinism();
  void stage(const GraphPtr& graph, int stage);
  void step(const StepPtr& step, bool walked);
  bool behind();  // steps come faster than they are written, and who makes them waits; never while nothing can be written
  void alert(const snapshot::Alert& alert);
  void takenBack(qint64 step);  // a rewind: of this step and of later ones nothing stands
  void trials();                // what the store holds of them
  void ledger();                // likewise
  // Of a watched value; what was told before is not written again.
  void statistics(const snapshot::TensorData& value);
  void end(storage::RunStatus status);
  void endsAs(storage::RunStatus status) { endsAs_ = status; }  // when this is gone, what is recorded then

  // Reads a recorded project into the store; run 0 is the newest. Only when it was read the run that is recorded ends: see
  // opening().
  void open(const QString& path, std::int64_t run);
  // The graph of a phase of the project that is shown, into the store.
  void readStage(const QString& stage);
  // Takes a run out of the project that is shown, and gives its space back; while another run is recorded into it, its space
  // goes to that one. Not the run that is recorded.
  // deleted() or failed() follows; in place of a shown one the newest is shown.
  void deleteRun(qint64 run);
  ProjectQueries& queries() { return queries_; }
  CancellableReads& reads() { return reads_; }
  // Everything handed over is done.
  bool idle() const { return threads_.idle(); }
  bool recording() const { return recording_; }  // a run is begun and not ended
  std::int64_t run() const { return run_; }      // its number in the project; 0 until begun()

 signals:
  void stateChanged(const QString& text, const QString& role, const QString& tip);
  // Of the run that is recorded: it cannot be at present, what that costs and what one can do; told anew as it changes, and
  // empty once it is recorded again, or is no more.
  void troubled(const QString& text);
  void begun();  // the project and the number of the run are known
  void failed(const QString& text);
  void reported(const QString& path);
  void deleted(qint64 run);
  void opening();  // a project was read and is shown next
  void opened(const QString& path);
  void damaged(const QStringList& warnings);  // after opened(): why, then what could not be read
  void besideAnother(const QString& path);    // the run that began is recorded here: another window writes the project
  void elsewhere(const QString& path, const QString& why);  // the same: the project cannot be written

 private:
  using Core = ProjectThreads::Core;

  void tellState();
  void showState(const storage::RecorderState& state, const QString& path);
  static void missStages(Core& core);

  SnapshotStore& store_;
  ProjectThreads threads_;
  CancellableReads reads_;
  ProjectQueries queries_;
  EarlierSteps earlier_;
  std::unique_ptr<ScratchFolder> copies_;  // of projects that cannot be read where they lie; of the reading thread
  QTimer timer_;
  std::shared_ptr<WaitingSteps> waiting_;  // the newest job, while it is one of steps
  std::uint64_t waitingAt_ = 0;            // jobs with it
  std::shared_ptr<RecordingLoad> load_ = std::make_shared<RecordingLoad>();
  bool recording_ = false;
  std::int64_t run_ = 0;
  storage::RunStatus endsAs_ = storage::RunStatus::kFinished;
  int builds_ = 0;                   // of the run that is recorded
  int shows_ = 0;                    // projects that were opened
  std::map<int, std::string> told_;  // statistics by value
};

}  // namespace stepscope
