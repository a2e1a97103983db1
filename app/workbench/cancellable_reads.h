// SPDX-License-Identifier: GPL-3.0-or-later
// What is read of the project on the reading thread and may be cancelled there: each reading has a flag, which the thread
// looks at, and is told to the views (ProjectReads). GUI thread, but for the flags.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "views/common/project_reads.h"

namespace stepscope {

class CancellableReads : public QObject {
  Q_OBJECT

 public:
  using Stop = std::shared_ptr<std::atomic<bool>>;  // set: nobody wants the answer any more

  explicit CancellableReads(ProjectFacts& facts) : facts_(facts) {}
  ~CancellableReads() override;  // cancels what is read; nothing is told

  // `text`: what is said of it when it takes longer than a second; empty: nothing. `cancelled` brings back what was there
  // before.
  Stop begin(ProjectReads::What what, const QString& text, std::function<void()> cancelled = {});
  // Its answer came. False: it was cancelled, or dropped, and is not to be used.
  bool end(const Stop& stop);
  // Another one takes its place: its answer is not wanted, and nothing is brought back. A null one is none.
  void drop(const Stop& stop);
  void dropAll();  // of a project that is closed
  void cancel();   // all of them

  // Of the one that takes longest, more than a second by now; empty: none.
  QString longText() const;

 private:
  struct Reading {
    Stop stop;
    ProjectReads::What what;
    QString text;
    std::function<void()> cancelled;
    QElapsedTimer since;
  };

  ProjectFacts& facts_;
  std::vector<Reading> open_;
};

}  // namespace stepscope
