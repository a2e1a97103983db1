// SPDX-License-Identifier: GPL-3.0-or-later
// Where a training stood when its window was closed, or when another model took its place: its state, its place and what was
// set by hand in its step, as files beside the project that it was recorded in, and the way to go on from there. Of the
// newest three runs; a state takes at most a quarter of what the disk has free. Trainings of this machine only: what another
// machine or a script trains is theirs. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <optional>

#include "app/workbench/session_mark.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class ModelOpening;
class RecordingWiring;
class ReturnPath;

class KeptTraining : public QObject {
  Q_OBJECT

 public:
  // The way goes through `path`; `wiring` knows the projects and is told which run the next one goes on from.
  KeptTraining(const WindowParts& parts, ModelOpening& opening, RecordingWiring& wiring, ReturnPath& path);

  // The window is asked to close. True: what is trained is kept first, and kept() follows; asked again, it is not waited
  // for.
  bool keep();
  bool closing() const { return closing_ && !staying_; }  // it was asked
  // The same, but the window stays, with a training that is paused: the end of a desktop session can be called off. Returns
  // when it is kept, or cannot be, or after `ms`; the loop turns meanwhile.
  void keepAndStay(int ms);
  // What was trained is kept, another model takes its place then: `then`, at once where nothing is to keep.
  void keepBefore(std::function<void()> then);
  // Of this run of a project, or of its newest kept one (run 0).
  static std::optional<SessionPlace> find(const QString& project, qint64 run, QString* problem = nullptr);

 signals:
  void kept();   // or cannot be; the window closes
  void ended();  // likewise, also where it stays

 private:
  bool wanted() const;
  bool trained() const;
  SessionPlace present() const;
  void goOn();
  void save();
  void saved(bool good);
  void offer(const QString& project, qint64 run);
  void update();

  WindowParts parts_;
  ModelSession& session_;
  SnapshotStore& store_;
  ModelOpening& opening_;
  RecordingWiring& wiring_;
  ReturnPath& path_;
  void leaveOff();
  void end();
  bool closing_ = false, saving_ = false, staying_ = false;
  std::function<void()> then_;         // what it is kept for, where the window stays
  QString file_;                       // that is written
  std::optional<SessionPlace> place_;  // that is kept with it; known before a step that is begun is left
  std::optional<SessionPlace> offered_;
};

}  // namespace stepscope
