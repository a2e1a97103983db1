// SPDX-License-Identifier: GPL-3.0-or-later
// The actions that move the selection: back and forward, by number, to neighbours, to the other half of a pair, to alerts.
// GUI thread.
#pragma once

#include <QObject>

#include "app/workbench/window_parts.h"

namespace stepscope {

class SelectCommands : public QObject {
  Q_OBJECT

 public:
  explicit SelectCommands(const WindowParts& parts);

  // Offers what can be done now.
  void update();

 private:
  void nextAlert();
  void moveBy(int instructions);
  void selectForward();
  void selectGradient();

  WindowParts parts_;
  SelectionModel& selection_;
  SnapshotStore& store_;
  int alertPlace_ = -1;  // in the list of alerts, of the newest one that was selected
};

}  // namespace stepscope
