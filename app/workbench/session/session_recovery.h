// SPDX-License-Identifier: GPL-3.0-or-later
// A worker that died, or is replaced: what is told of it, and the way back to where it was.
#pragma once

#include <optional>

#include "app/workbench/build_trace.h"
#include "app/workbench/session/session_link.h"

namespace stepscope {

class SessionRecovery : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionRecovery(const SessionParts& parts) : SessionPart(parts) {}

  void restart();                          // kills what is there; the plan that was shown, same step and instruction
  void buildWithout(const QString& pass);  // restart, and build what died with pass.NAME=off: after buildDied

  // A new worker takes the place of the one that had built the model.
  bool comingBack() const { return returnTo_.has_value(); }
  void beginAgain(const snapshot::Position& goal);                       // a new worker runs all steps up to there
  void returnTo(const snapshot::Position& place) { returnTo_ = place; }  // with the next build
  void comeBack();                                                       // to where the worker was that died
  void giveUp(const QString& why);                                       // the new worker does not have the model
  void workerDied(const QString& reason);
  BuildTrace& trace() { return trace_; }
  const BuildTrace& trace() const { return trace_; }
  double stepNs() const;  // of the steps that are shown, at full speed; 0: none is
  void leave() { returnTo_.reset(); }

 private:
  void tellOfBuildDeath(const QString& reason, const OptionSettings& sent, const OptionSettings& waiting);
  void startAgain(bool build);

  BuildTrace trace_;
  std::optional<snapshot::Position> returnTo_;
};

}  // namespace stepscope
