// SPDX-License-Identifier: GPL-3.0-or-later
// Drives a window by its command line: trains, steps, selects, waits until nothing runs, writes the picture, leaves.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include "app/workbench/arguments.h"

namespace stepscope {

class MainWindow;

class Script : public QObject {
  Q_OBJECT

 public:
  // Gives up after two minutes with exit code 1. Without a screenshot it ends quietly when the last step is done.
  Script(MainWindow& window, const Arguments& arguments, QObject* parent = nullptr);

 private:
  void tick();

  MainWindow& window_;
  Arguments arguments_;
  QTimer timer_;
  QElapsedTimer since_;
  int stage_ = 0;
  int quiet_ = 0;
};

}  // namespace stepscope
