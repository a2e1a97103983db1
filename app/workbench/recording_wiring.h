// SPDX-License-Identifier: GPL-3.0-or-later
// Connects the session with the project file: which file a run goes into, what is recorded of it, what is told about it.
// GUI thread.
#pragma once

#include <QObject>
#include <optional>
#include <string>
#include <utility>

#include "app/workbench/build_keeper.h"
#include "app/workbench/log_wiring.h"
#include "app/workbench/scratch_folder.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class RecentFiles;

class RecordingWiring : public QObject {
  Q_OBJECT

 public:
  // `remember`: projects lie in a folder of the user's data, named after the model; else they go with the window.
  RecordingWiring(const WindowParts& parts, RecentFiles& files, bool remember);

  // Where runs are recorded from now on; empty: as said above.
  void setProjectPath(const QString& path) { projectPath_ = path; }
  QString pathFor(const QString& model) const;
  bool lasting() const { return remember_ || !projectPath_.isEmpty(); }  // projects outlive the window
  // The next run begins with the state that this one of the same project had before the step.
  void goesOnFrom(qint64 run, qint64 step) { origin_ = {run, step}; }

 signals:
  void runBegun();  // of a model that was built, before anything of it is recorded

 private:
  void connectSession();
  void connectNotices();
  void builtChanged();
  void begin();
  std::string origin();  // of the parameters of the run that begins, for RunInfo::weights

  WindowParts parts_;
  ModelSession& session_;
  Recording& recording_;
  RecentFiles& files_;
  bool remember_;
  QString projectPath_;
  QString startState_;                               // of the run that was begun last
  std::optional<std::pair<qint64, qint64>> origin_;  // run and step
  BuildKeeper keeper_;
  LogWiring log_;
  ScratchFolder scratch_;  // projects of windows that remember nothing
};

}  // namespace stepscope
