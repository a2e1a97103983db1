// SPDX-License-Identifier: GPL-3.0-or-later
// A question to the laboratory that takes a while, and the newest answer to it. Written by the workbench, read by views. GUI
// thread only.
#pragma once

#include <QObject>
#include <QString>
#include <memory>

#include "views/common/signal_rate.h"

namespace stepscope {

class Study : public QObject {
  Q_OBJECT

 public:
  explicit Study(QObject* parent = nullptr) : QObject(parent) {}

  bool running() const { return running_; }
  const QString& problem() const { return problem_; }  // why the newest question has no answer, hostile text
  const QString& what() const { return what_; }        // is done now, hostile text; empty: not known yet
  qint64 done() const { return done_; }                // parts of the work, of
  qint64 total() const { return total_; }              // so many; 0: not known

  void begin() {
    running_ = true;
    problem_.clear();
    what_.clear();
    done_ = total_ = 0;
    told_.now();
  }
  void setProgress(const QString& what, qint64 done, qint64 total) {
    what_ = what;
    done_ = done;
    total_ = total;
    told_.request();
  }
  void finish(const QString& problem) {
    running_ = false;
    problem_ = problem;
    told_.now();
  }

 signals:
  void changed();  // at most 30 times a second while it runs

 protected:
  void tell() { told_.request(); }  // what was found so far grew

 private:
  bool running_ = false;
  QString problem_, what_;
  qint64 done_ = 0, total_ = 0;
  SignalRate told_{[this] { emit changed(); }};
};

template <typename Report>
class StudyOf : public Study {
 public:
  using Study::Study;

  const std::shared_ptr<const Report>& report() const { return report_; }  // nullptr before the first
  bool recorded() const { return recorded_; }                              // it was read from a project

  // Without a report the one before stays.
  void end(std::shared_ptr<const Report> report, const QString& problem) {
    if (report) {
      report_ = std::move(report);
      recorded_ = false;
    }
    finish(problem);
  }
  void showRecorded(std::shared_ptr<const Report> report) {
    report_ = std::move(report);
    recorded_ = true;
    finish({});
  }
  void clear() {
    report_ = nullptr;
    recorded_ = false;
    finish({});
  }

 private:
  std::shared_ptr<const Report> report_;
  bool recorded_ = false;
};

}  // namespace stepscope
