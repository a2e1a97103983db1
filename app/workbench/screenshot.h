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
  // Gives up after two minutes with exit code 1, and at once where the file does not open or build, or has no instruction of
  // the number that was asked for: then without a picture, with the error on stderr. Without a screenshot it only says so,
  // and ends quietly when the last step is done.
  Script(MainWindow& window, const Arguments& arguments, QObject* parent = nullptr);

 private:
  void tick();
  bool opened() const;     // what the command line names is shown, and built where it is to be run
  QString beyond() const;  // an instruction that the plan does not have, in words; empty: none
  void fail(const QString& why);

  MainWindow& window_;
  Arguments arguments_;
  QTimer timer_;
  QElapsedTimer since_;
  int stage_ = 0;
  int quiet_ = 0;
  QString problem_;  // the newest that was told
};

}  // namespace stepscope
