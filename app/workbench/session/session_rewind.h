// SPDX-License-Identifier: GPL-3.0-or-later
// Going back over steps: to a state that is kept, or from one before it by repeating.
#pragma once

#include <optional>
#include <utility>

#include "app/workbench/session/rewind_ways.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_link.h"
#include "app/workbench/state_ring.h"

namespace stepscope {

class SessionRewind : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionRewind(const SessionParts& parts) : SessionPart(parts) {}

  // To the state in which the step began, edits before it included: one that is kept, else the newest one before it, from
  // which the steps between run again. Where there is none, a new worker runs them from the beginning, and the instructions
  // of the step before `instruction`, without `then`.
  void rewindThen(std::int64_t step, Then then, int instruction = 0);
  // Where rewindThen() can go, as soon as the worker has said what it remembers itself; never where it is busy.
  void askWays(const std::function<void(const RewindWays&)>& then);
  // In this step or an earlier one, behind the instruction that is selected; -1: before the step.
  void goTo(std::int64_t step, int instruction);
  // On from where the worker stands to the goal, edits from this one on included; nothing of it is recorded again.
  void replay(const snapshot::Position& goal, std::size_t edit, const Then& then = {});
  // Of a training that went on before: the state before the step, in a file, which holds those of its edits that were made
  // between steps. Then the step up to the instruction, with the other edits; -1: it was not begun.
  void takeUp(std::int64_t step, const QString& path, int instruction, const std::vector<SessionEdits::Edit>& edits);
  void loadKept(const KeptStates::State& state, const Then& then);
  bool replaying() const { return replaying_; }
  bool restoring() const { return replaying_ || loading_; }  // the worker is on its way to where it is to stand
  void workerDied() { replaying_ = loading_ = false; }
  void becameIdle();

 private:
  void takeBack(std::int64_t step);
  void standBefore(std::int64_t step, std::size_t edit, const Then& there);
  void repeatTo(const snapshot::Position& goal, Then there);  // from the newest state before it
  void arrived(const snapshot::Position& goal, std::size_t edit, bool edited, const Then& then);
  void repeatSteps(std::int64_t upTo, const snapshot::Position& goal, std::size_t edit, const Then& then);
  void failed();

  bool replaying_ = false, loading_ = false;
  std::optional<std::pair<std::int64_t, int>> wantedPlace_;  // as soon as what runs has stopped
};

}  // namespace stepscope
