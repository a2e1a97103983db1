// SPDX-License-Identifier: GPL-3.0-or-later
// The actions that move a run: stepping both ways, running, rewinding, runs of their own, breakpoints. GUI thread.
#pragma once

#include <QObject>

#include "app/workbench/window_parts.h"

namespace stepscope {

class RunCommands : public QObject {
  Q_OBJECT

 public:
  explicit RunCommands(const WindowParts& parts);

  // Offers what can be done now.
  void update();
  // What runs, or else what is read of the project. False: nothing does.
  bool stop();

 signals:
  void beginningAgain();  // a run from step 0, whose set-up is known

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  qint64 shownRun() const;  // 0: the project has none
  void askForName(qint64 run);
  void connectSteps();
  void connectRuns();

  WindowParts parts_;
  ModelSession& session_;
  bool heldKey_ = false;  // the newest key was not pressed again
};

}  // namespace stepscope
