// SPDX-License-Identifier: GPL-3.0-or-later
// What the toolbar and the status line tell of the store: options that are on, device, alerts, what a run breaks on. GUI
// thread.
#pragma once

#include <QObject>

#include "app/workbench/window_parts.h"

namespace stepscope {

class Toolbar;

class ToolbarFacts : public QObject {
  Q_OBJECT

 public:
  ToolbarFacts(const WindowParts& parts, Toolbar& toolbar);

  // Breakpoints on NaN and on new infinities, on or off; the other ones stay.
  void setBreakOn(bool nan, bool inf);
  void updateAlerts();  // also when the colours changed

 private:
  void updateOptions();
  void updateBreakOn();

  WindowParts parts_;
  SnapshotStore& store_;
  Toolbar& toolbar_;
};

}  // namespace stepscope
