// SPDX-License-Identifier: GPL-3.0-or-later
// Connects what views ask the laboratory for with the session, and what it finds with the project file.
#pragma once

#include <QObject>

#include "app/workbench/recording.h"
#include "app/workbench/session/model_session.h"

namespace stepscope {

class LabWiring : public QObject {
  Q_OBJECT

 public:
  // All of them outlive it. `remember`: whether captures are compared is kept with the user's settings.
  LabWiring(SnapshotStore& store, Wishes& wishes, ModelSession& session, Recording& recording, bool remember);

 private:
  void compareFirst();  // a capture that was just built

  SnapshotStore& store_;
  ModelSession& session_;
};

}  // namespace stepscope
