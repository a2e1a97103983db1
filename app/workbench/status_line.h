// SPDX-License-Identifier: GPL-3.0-or-later
// The line below the panels: phase, step, loss, speed, peak bytes, worker, recorder. Follows the store.
#pragma once

#include <QLabel>
#include <QTimer>
#include <QWidget>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class StatusLine : public QWidget {
  Q_OBJECT

 public:
  StatusLine(const SnapshotStore& store, const SelectionModel& selection, QWidget* parent = nullptr);

  void setDevice(const QString& text);
  void setScript(const QString& name);  // that is attached, in the place of a worker; empty: none is
  // Colour names a state: "ok", "warn", "error", "faint".
  void setRecorder(const QString& text, const QString& role, const QString& tip);
  // Of a run: the step that it ends before (0: none is known), and whether it looks at no value.
  void setRun(std::int64_t goal, bool fullSpeed);
  // What the worker does brings back what was there before; it is no run.
  void setRestoring(bool restoring);
  // Of the step that runs: instructions done.
  void setProgress(const QString& what, qint64 done, qint64 total);
  void note(const QString& text);      // for a few seconds, in place of the fields
  void takeBack(const QString& note);  // unless another one stands there

 signals:
  void workerClicked();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  static QString strong(const QString& text);
  static QString dot(const QColor& colour, const QString& text);
  void refresh();
  void showPlace(bool running);
  void showStep(bool running);
  void showLoss();
  void showSpeed();
  void showPeak();
  void showWorker(bool running);
  void hideEmpty();
  void elideNote();
  std::int64_t stepOfRun() const;  // the one that runs now
  bool working() const;            // the worker does something
  qint64 instructionNow() const;   // that runs next

  const SnapshotStore& store_;
  const SelectionModel& selection_;
  QLabel *where_, *step_, *phase_, *loss_, *speed_, *peak_, *device_, *worker_, *recorder_, *note_;
  QString recorderText_, recorderRole_, recorderTip_, script_, noted_;
  int speedWidth_ = 0;  // without what padding is of the tokens
  QTimer noteTimer_;
  std::int64_t goal_ = 0;
  bool fullSpeed_ = false, restoring_ = false;
  qint64 done_ = 0, total_ = 0;  // of step runs_
  std::int64_t runs_ = -1;
};

}  // namespace stepscope
