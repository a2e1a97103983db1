// SPDX-License-Identifier: GPL-3.0-or-later
// What every option gives: the newest session of trials, growing while it runs. Written by the workbench, read by views. GUI
// thread only.
#pragma once

#include "engine/snapshot/lab.pb.h"
#include "views/common/study.h"

namespace stepscope {

class OptionTrials : public Study {
  Q_OBJECT

 public:
  using Study::Study;

  // No trials before the first session. While one runs, those it has measured, in their order and without verdicts.
  const snapshot::TrialsReport& report() const { return report_; }
  bool recorded() const { return recorded_; }  // read from a project

  void begin();
  void add(const snapshot::Trial& trial);
  void end(snapshot::TrialsReport report);
  // The session has no answer. What it measured before stays, as of one that was cancelled; where it measured nothing the
  // one before stays.
  void fail(const QString& problem);
  void showRecorded(snapshot::TrialsReport report);
  void clear();

 private:
  snapshot::TrialsReport report_, before_;
  bool recorded_ = false;
};

}  // namespace stepscope
