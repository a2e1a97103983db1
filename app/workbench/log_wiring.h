// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that the log tells comes together here or in the store: phases and passes of a build, alerts of the worker,
// what became of the recording, what the window said. Each record has a level and begins with who speaks: "pass", "worker",
// "recorder", "window"; so one rule of the log view hides a speaker. GUI thread.
#pragma once

#include <QObject>

#include "app/workbench/window_parts.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

class LogWiring : public QObject {
  Q_OBJECT

 public:
  explicit LogWiring(const WindowParts& parts);

 private:
  void tell(const QString& level, const QString& who, const QString& text);
  void tellPhases();
  void tellAlert(const snapshot::Alert& alert);
  void tellRecorder(const QString& text, const QString& role);

  WindowParts parts_;
  QString recorder_;  // the state told last
};

}  // namespace stepscope
