// SPDX-License-Identifier: GPL-3.0-or-later
// The project file as the window uses it: records the running session, opens recorded projects, answers SQL, writes reports.
//
// What is recorded goes through one thread, what is read through another one with connections of its own: a query that takes
// seconds holds up no recording. Each does what it was asked for in that order, and what is read sees what was recorded
// before it was asked for. Answers come back as signals and facts in the store. Nothing here waits.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <QTimer>
#include <atomic>
#include <map>
#include <memory>

#include "storage/recorder.h"
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
  void nameRun(const QString& name);
  // The newest build, but an earlier plan of this signature runs again.
  void planResumed(const QString& signature);
  void determinism();
  void stage(const GraphPtr& graph, int stage);
  void step(const StepPtr& step, bool walked);
  void alert(const snapshot::Alert& alert);
  void trials();  // what the store holds of them
  // Of a watched value; what was told before is not written again.
  void statistics(const snapshot::TensorData& value);
  void end(storage::RunStatus status);

  // Reads a recorded project into the store; run 0 is the newest. Only when it was read the run that is recorded ends: see
  // opening().
  void open(const QString& path, std::int64_t run);
  // The graph of a phase of the project that is shown, into the store.
  void readStage(const QString& stage);
  void runSql(const QString& query);
  void cancelSql() { cancelSql_->store(true); }
  // .html .json .csv .trace.json, and .pdf printed from the HTML.
  void report(const QString& path);
  // Takes a run out of the project that is shown, and gives its space back; not while something is recorded into it.
  // deleted() or failed() follows; in place of a shown one the newest is shown.
  void deleteRun(qint64 run);
  void refreshRuns();
  // Answers come as facts; of several requests that wait the newest counts.
  void compare(const CompareRequest& request);
  void listOtherRuns(const QString& path);
  // Everything handed over is done.
  bool idle() const { return jobs_ == 0; }
  bool recording() const { return recording_; }  // a run is begun and not ended

 signals:
  void stateChanged(const QString& text, const QString& role, const QString& tip);
  void failed(const QString& text);
  void reported(const QString& path);
  void deleted(qint64 run);
  void opening();  // a project was read and is shown next
  void opened(const QString& path);
  void damaged(const QStringList& warnings);  // after opened(): why, then what could not be read
  void besideAnother(const QString& path);    // the run that began is recorded here: another window writes the project
  void elsewhere(const QString& path, const QString& why);  // the same: the project cannot be written

 private:
  struct Core;   // lives on the storage thread
  struct Steps;  // that wait for it

  void post(std::function<void(Core&)> job);  // on the thread that records
  void read(std::function<void(const QString& path)>
                job);  // on the one that reads; the project that is recorded or shown; left out when the window has ended
  void run(const std::function<void()>& job);  // a job ends: what it threw is told
  // Runs on the GUI thread, unless the window is gone.
  void back(std::function<void()> then);
  void tellState();
  void refreshStartupHistory();
  static void missStages(Core& core);
  // The project that is recorded or shown; another one than before has other runs.
  void setProject(const QString& path);

  SnapshotStore& store_;
  QThreadPool pool_, readers_;
  std::unique_ptr<ScratchFolder> copies_;  // of projects that cannot be read where they lie; of the reading thread
  std::shared_ptr<Core> core_;
  std::shared_ptr<std::atomic<bool>> cancelSql_;
  QTimer timer_;
  std::atomic<int> jobs_ = 0;
  std::shared_ptr<Steps> waiting_;  // the newest job, while it is one of steps
  bool recording_ = false;
  std::int64_t shownRun_ = 0;                      // 0: the newest
  int builds_ = 0;                                 // of the run that is recorded
  int shows_ = 0;                                  // projects that were opened
  std::map<int, std::string> told_;                // statistics by value
  std::shared_ptr<std::atomic<int>> comparisons_;  // asked for so far
  std::shared_ptr<std::atomic<bool>> ending_;
};

}  // namespace stepscope
