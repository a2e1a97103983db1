// SPDX-License-Identifier: GPL-3.0-or-later
// Models and projects that were opened, with the set-up each model was built with last, and the samples. The start page
// lists them. GUI thread.
#pragma once

#include <QString>

#include "app/workbench/window_settings.h"
#include "engine/snapshot/worker.pb.h"

namespace stepscope {

class RecentFiles {
 public:
  RecentFiles(WindowSettings& settings, SnapshotStore& store) : settings_(settings), store_(store) {}

  // Where the window keeps the projects of models that were given none.
  static QString projectFolder();
  // The project of a model in that folder, without the suffix that tells one of several windows.
  static QString projectName(const QString& host, const QString& model);

  // A model, or what was recorded of it; the newest stands first.
  void note(const QString& path);
  void noteSetUp(const QString& model, const snapshot::Configure& configuration);
  // What a capture says of itself, then what the model was built with last; empty where neither is.
  snapshot::Configure lastSetUp(const QString& model);
  QString newest();                 // empty: none
  void list();                      // into the store
  bool lists(const QString& path);  // it was opened before
  void forget(const QString& path);

 private:
  WindowSettings& settings_;
  SnapshotStore& store_;
};

}  // namespace stepscope
