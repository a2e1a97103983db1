// SPDX-License-Identifier: GPL-3.0-or-later
// What happened in the session, told above the views with what can be done about it: problems, breaks, alerts, long work,
// a worker that died or does not answer. GUI thread.
#pragma once

#include <QObject>
#include <QTimer>
#include <optional>
#include <utility>

#include "app/workbench/window_parts.h"
#include "engine/snapshot/worker.pb.h"

namespace stepscope {

class ChangeHistory;

class SessionNotices : public QObject {
  Q_OBJECT

 public:
  SessionNotices(const WindowParts& parts, ChangeHistory& history);

  // A budget of live activations with which the plan stays below its limit, as far as values can be computed again.
  // `askedLimit`: one that the plan does not fit into, which it is given too; empty: the one it has.
  void fitByRecompute(const QString& askedLimit);

 private:
  void tellProblem(const QString& text, const QString& code);
  void tellAlert(const snapshot::Alert& alert);
  void tellWhatDoesNotFit(const QString& text);  // with a way to fit, or without one where that was tried
  void tellBreak(const QString& reason, int instruction);
  void askToRepeat(qint64 from, qint64 step, double ns);
  void tellLongWork();

  WindowParts parts_;
  ModelSession& session_;
  SnapshotStore& store_;
  ChangeHistory& history_;
  bool fitting_ = false;  // a budget was asked for so that the plan fits, and no plan came of it yet
  QTimer progress_;
  QString stopTold_;                                                // in the status line
  std::optional<std::pair<std::int64_t, std::int64_t>> stoppedAt_;  // step and instruction that it is of
};

}  // namespace stepscope
