// SPDX-License-Identifier: GPL-3.0-or-later
// How long the event loop of the window was held by our own code.
//
// A turn is one pass of the event loop, or one call into the window that stands for a key or a click. Its length is the time
// this thread ran or slept; time spent waiting for a core is not counted, nor time in which the whole program was stopped,
// so a busy machine does not look like a blocked window. A slow machine, or a sanitizer, is told from a fast one by the
// yardstick: a fixed piece of work of the kind a window does (sorting, hashing, painting text).
#pragma once

#include <QApplication>
#include <QString>
#include <atomic>
#include <functional>
#include <thread>

namespace stepscope {

// Remembers which event took longest within the present turn.
class WatchedApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override;

  qint64 longestNs = 0;
  QString longest;

 private:
  int depth_ = 0;
};

class LoopWatch {
 public:
  LoopWatch();
  ~LoopWatch();

  // Runs the loop until `done`, at most `ms`; every pass is a turn.
  bool wait(const std::function<bool()>& done, int ms = 60'000);
  // One turn: what a key or a click does.
  void act(const std::function<void()>& f);
  // Work that no user does, such as making the window: not counted.
  void forget() {
    worstNs_ = 0;
    worst_.clear();
  }

  qint64 worstMs() const { return worstNs_ / 1'000'000; }
  // 50 ms, longer in the proportion in which this machine is slower than the one the window was measured on.
  qint64 boundMs() const;
  // Whether no turn was longer than three times the bound; one above the bound is told.
  bool free();
  QString text() const;

 private:
  void turn(const std::function<void()>& f);
  qint64 ownNs() const;  // clock of this thread, without waiting for a core

  int schedstat_ = -1;
  std::atomic<qint64> liveNs_ = 0;
  std::atomic<bool> end_ = false;
  std::thread ticker_;
  double slowness_ = 1;
  qint64 worstNs_ = 0;
  QString worst_;
};

}  // namespace stepscope
