// SPDX-License-Identifier: GPL-3.0-or-later
// The threads of the project file: what is recorded goes through one, what views show is read through another, and SQL that
// somebody wrote through a third, with connections of their own: a query that takes seconds holds up neither a recording nor
// a view, and waits for no view. Each does what it was asked for in that order, but refills of what views have come after
// the rest; and what is read sees what was recorded before it was asked for. Called on the GUI thread; nothing waits but
// finish().
#pragma once

#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>

#include "storage/recorder.h"

namespace stepscope {

class ProjectThreads : public QObject {
  Q_OBJECT

 public:
  struct Core {  // lives on the thread that records
    std::unique_ptr<storage::Recorder> recorder;
    QString path;        // of the project that is recorded or shown
    int stagesLeft = 0;  // graphs of the newest build that were not handed over
  };
  using Job = std::function<void(Core&)>;
  using Question = std::function<void(const QString& path)>;  // of the project that is recorded or shown

  enum class Reader { kView, kRefill, kSql };

  ProjectThreads();
  ~ProjectThreads() override { finish(); }

  void post(Job job);
  void read(Question question, Reader reader = Reader::kView);  // left out after finish()
  // Runs on the GUI thread, unless this is gone by then. From any thread.
  void back(std::function<void()> then);
  // Everything handed over is done.
  bool idle() const { return jobs_ == 0; }
  std::uint64_t posted() const { return posted_; }  // jobs and questions so far
  void finish();                                    // what was asked for is done or left out

 signals:
  void outOfMemory();  // a job could not be done

 private:
  void run(const std::function<void()>& job);  // a job ends: what it threw is told

  QThreadPool recorders_, readers_, queries_;
  std::shared_ptr<Core> core_;
  std::atomic<int> jobs_ = 0;
  std::uint64_t posted_ = 0;
  std::shared_ptr<std::atomic<bool>> ending_;
};

}  // namespace stepscope
