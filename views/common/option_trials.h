// SPDX-License-Identifier: GPL-3.0-or-later
// What every option gives: the newest session of trials, growing while it runs. Written by the workbench, read by views. GUI
// thread only.
#pragma once

#include <QObject>
#include <QString>

#include "engine/snapshot/lab.pb.h"
#include "views/common/signal_rate.h"

namespace stepscope {

class OptionTrials : public QObject {
  Q_OBJECT

 public:
  explicit OptionTrials(QObject* parent = nullptr) : QObject(parent) {}

  // No trials before the first session. While one runs, those it has measured, in their order and without verdicts.
  const snapshot::TrialsReport& report() const { return report_; }
  bool running() const { return running_; }
  bool recorded() const { return recorded_; }          // read from a project
  const QString& problem() const { return problem_; }  // why the newest session has no trials, hostile text
  const QString& what() const { return what_; }        // is measured now, hostile text; empty: not known yet
  qint64 done() const { return done_; }                // candidates that were begun, of
  qint64 total() const { return total_; }              // so many; 0: not known yet

  void begin();
  void add(const snapshot::Trial& trial);
  void setProgress(const QString& what, qint64 done, qint64 total);
  void end(snapshot::TrialsReport report);
  // The session has no answer. What it measured before stays, as of one that was cancelled; where it measured nothing the
  // one before stays.
  void fail(const QString& problem);
  void showRecorded(snapshot::TrialsReport report);
  void clear();

 signals:
  void changed();  // at most 30 times a second while a session runs

 private:
  snapshot::TrialsReport report_, before_;
  bool running_ = false, recorded_ = false;
  QString problem_, what_;
  qint64 done_ = 0, total_ = 0;
  SignalRate told_{[this] { emit changed(); }};
};

}  // namespace stepscope
