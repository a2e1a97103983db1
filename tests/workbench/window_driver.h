// SPDX-License-Identifier: GPL-3.0-or-later
// A window that a test uses as a person would: actions, dialogs, clicks; with the time each turn of its loop took.
#pragma once

#include <sys/types.h>

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>
#include <memory>

#include "app/workbench/main_window.h"
#include "tests/workbench/loop_watch.h"

namespace stepscope {

// A model with the settings it is trained with; `data` may be empty.
struct TestModel {
  QString name, model, data;
};

// The bundled samples.
std::vector<TestModel> bundledModels();
// Models of the corpus in ../shared/corpus by name; `missing` says why when it is not there.
std::optional<TestModel> corpusModel(const QString& name, QString* missing);

// Arrays "image" float32 and "label" int64 for `entries` steps of the digits model; the entry `poisoned` holds one NaN, at
// [3, 0, 0, 5]. False when the file cannot be written.
bool writeDigits(const QString& path, int entries, int poisoned);

// What a file holds; empty where it cannot be read.
QString textOf(const QString& path);
// The text of every cell of the first table of a view, row by row.
QStringList cellsOf(const View& view);

// The processes this one started, by their id: the worker.
std::vector<pid_t> childProcesses();

class WindowDriver {
 public:
  explicit WindowDriver(QSize size = {1280, 800});

  MainWindow& operator*() { return *window_; }
  MainWindow* operator->() { return window_.get(); }
  LoopWatch& loop() { return loop_; }

  // Opens the file and waits for the set-up; nullptr when none came.
  class SetUpDialog* open(const QString& model);
  // Through the set-up, as a user does.
  bool build(const TestModel& model, const std::vector<std::pair<QString, QString>>& fields = {});
  // Without the set-up, with these settings of the command line.
  bool openBuilt(const TestModel& model, const std::vector<std::pair<std::string, std::string>>& settings = {});
  // A recorded project, to look at.
  bool openRecorded(const QString& project);
  // Everything that was read of a build, and every step so far, stands in the project file.
  bool recorded();
  bool settled(int ms = 60'000);
  // The action's trigger and all that follows from it; false when it is not enabled.
  bool act(const char* action);
  bool select(const Selection& selection);
  // Writes `path` through the file dialog of an action that exports.
  // `written`: where the file is then; empty: at `path`.
  bool exportTo(const char* action, const QString& path, const QString& written = {});

  int instruction() { return window_->store().position().instruction(); }
  // What the tensor view shows of the selected value: its cells, and the bytes they came from.
  QStringList shownCells();
  TensorPtr shownTensor();
  View* view(const QString& id);
  // Writes a picture of the window into the folder that STEPSCOPE_PICTURES names; without it nothing.
  void picture(const QString& name);
  QString failure() const { return failure_; }

 private:
  std::unique_ptr<MainWindow> window_;
  LoopWatch loop_;
  QString failure_;
};

}  // namespace stepscope

// For the slots of a test: the loop of the window was never held; something was done, or the window says why not.
#define QVERIFY_LOOP(driver)                            \
  do {                                                  \
    const bool free = (driver).loop().free();           \
    qInfo("%s", qPrintable((driver).loop().text()));    \
    QVERIFY2(free, qPrintable((driver).loop().text())); \
  } while (false)
#define QVERIFY_DONE(expression, driver) \
  QVERIFY2(expression, qPrintable((driver).failure() + ' ' + (driver)->notice().text()))
