// SPDX-License-Identifier: GPL-3.0-or-later
// Questions on the project that is recorded or shown: its runs, two of them compared, earlier start-ups, SQL, reports.
// Answers come as facts in the store and as signals. Nothing here waits.
#pragma once

#include <QObject>
#include <atomic>
#include <memory>
#include <optional>

#include "app/workbench/cancellable_reads.h"
#include "app/workbench/project_threads.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class ProjectQueries : public QObject {
  Q_OBJECT

 public:
  ProjectQueries(SnapshotStore& store, ProjectThreads& threads, CancellableReads& reads);
  ~ProjectQueries() override { cancelSql(); }

  void setRun(std::int64_t run) { run_ = run; }  // that is shown; 0: the newest
  std::int64_t run() const { return run_; }
  // The project that is recorded or shown; another one than before has other runs.
  void setProject(const QString& path);
  void closeProject();  // nothing of it stays on the screen; the model that is opened has none yet

  void runSql(const QString& query);
  void cancelSql() { cancelSql_->store(true); }
  // .html .txt .json .csv .trace.json, and .pdf.
  void report(const QString& path);
  // A trace of torch.profiler beside the run; kept in the project where no run is recorded into it. Answer: the store,
  // imported(). Another plan of the same model has it joined again, once a step of it is written.
  void importTrace(const QString& path);
  // Of several requests that wait the newest counts.
  void compare(const CompareRequest& request);
  void listOtherRuns(const QString& path);
  void refreshRuns();
  void refreshStartupHistory();
  // Into ChosenStep, from the file where the store has it no more; -1: the newest ones again.
  void showStep(std::int64_t step);

 signals:
  void failed(const QString& text);
  void reported(const QString& path);
  void imported(const QString& text);
  void told(const QString& text);  // what was cancelled

 private:
  void comparisonCancelled();
  void planIsAnother();
  void stepsMore();
  std::optional<std::int64_t> liveBefore() const;  // number of the step after those of the live run that stand

  SnapshotStore& store_;
  ProjectThreads& threads_;
  CancellableReads& reads_;
  std::int64_t run_ = 0;
  QString trace_;  // that was imported, of the model tracedModel_; empty: none
  QString tracedModel_;
  bool again_ = false;  // it is joined again with the first step after lastBefore_
  StepPtr lastBefore_;
  std::shared_ptr<std::atomic<bool>> cancelSql_;
  CancellableReads::Stop comparison_, step_;  // the newest of each
};

}  // namespace stepscope
