// SPDX-License-Identifier: GPL-3.0-or-later
// Training at full speed, and the states that are kept on the way.
#pragma once

#include <QElapsedTimer>
#include <QTimer>

#include "app/workbench/session/session_link.h"
#include "app/workbench/state_ring.h"

namespace stepscope {

class SessionTrainer : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionTrainer(const SessionParts& parts);

  // Asks for steps at full speed, with breaks; `everyValue`: every value is looked at.
  static snapshot::Request fullSpeed(std::int64_t steps, bool everyValue);

  void train(std::int64_t steps);
  void trainOn(std::int64_t goal);  // up to this step
  void letRun();                    // at full speed, without end
  void pause();
  int pauses() const { return pauses_; }  // so far: what follows a request that was cancelled too late looks at it
  bool breaksOnValuesOnly() const;        // on numbers and conditions; no place in the step has to be watched
  void keepState();                       // into the ring
  // The worker that trained is gone, or is left: the run stands behind the last step that it told of. A run to a step keeps
  // its goal for the next worker, one without end is over.
  void lostWorker();
  KeptStates& ring() { return ring_; }
  void leave();
  void setHold(std::function<bool()> hold) { hold_ = std::move(hold); }

 private:
  qint64 keepEveryMs() const;
  void trainAtOnce(std::int64_t goal);  // with nothing of a step left to finish
  void chunkEnded(std::int64_t goal, std::int64_t steps);
  void chunkFailed(std::int64_t goal);
  void goOn(std::int64_t goal);
  bool walks() const;  // there are places to stop at
  void walkOn(std::int64_t goal);
  void end();

  int pauses_ = 0;
  KeptStates ring_;
  std::function<bool()> hold_;
  QTimer held_;
  std::int64_t heldGoal_ = 0;
  QElapsedTimer sinceKept_;
  qint64 keepMs_ = 0;         // that keeping the newest state took
  QElapsedTimer sinceChunk_;  // of steps at full speed was asked for
  std::int64_t chunk_ = 1;    // steps of one request at full speed
};

}  // namespace stepscope
