// SPDX-License-Identifier: GPL-3.0-or-later
// Reads what a build leaves behind so that it can be recorded: the verdicts on its nodes, then the graph of every phase,
// from the last to the first.
//
// While the user works: one quiet request at a time, and none is sent while something moves the session. The next build,
// and a session without one, end it.
#pragma once

#include <QObject>
#include <QStringList>
#include <functional>

#include "app/workbench/session/model_session.h"

namespace stepscope {

class BuildKeeper : public QObject {
  Q_OBJECT

 public:
  BuildKeeper(SnapshotStore& store, ModelSession& session, QObject* parent = nullptr);

  void begin();       // the store shows another build
  void beginAgain();  // it shows one that was kept before: only the verdicts on its nodes are read

 signals:
  void verdictsRead();  // they stand in the store
  void stageRead(const stepscope::GraphPtr& graph, int stage);

 private:
  void next();
  void ask(snapshot::Request request, const std::function<void(const Delivery&)>& answer);

  SnapshotStore& store_;
  ModelSession& session_;
  QStringList stages_;
  int left_ = 0;           // stages to read, the first ones
  bool verdicts_ = false;  // are read
  bool asking_ = false;
  int build_ = 0;  // answers of another one are too late
};

}  // namespace stepscope
