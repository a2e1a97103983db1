// SPDX-License-Identifier: GPL-3.0-or-later
// Moving through the instructions of a step, both ways, and from step to step under the eyes of breakpoints.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/workbench/session/session_link.h"

namespace stepscope {

struct Stops {  // of the step that is begun
  int count = 0, first = 0;
  std::vector<std::string> breaks;  // each reason once
};

class SessionStepper : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionStepper(const SessionParts& parts) : SessionPart(parts) {}

  void run(bool backwards);
  // Moves by hand. One that comes while another runs waits for its turn, so that no press of a key is lost; a pause, an
  // error, and a breakpoint that a move stopped at drop those that wait.
  void step(int count);  // negative: back
  void stepPhase(bool backwards);
  void finishStep();
  bool moving() const { return moving_; }  // one of them runs, or waits
  void becameIdle();                       // the next of them
  void dropWaiting();
  void runTo(int instruction);
  void abandon();

  void runOn();            // to a breakpoint, over as many steps as it takes
  void inStep(Then then);  // begins a step when none is begun
  // The selection follows the new position: what ran last and made; the next one and what it reads, where the step begins,
  // breaks, or was asked to stop. A selection beside the place that was asked for stays.
  void stopped(std::optional<int> asked = {});
  void settle(Then then);  // reads the position after a step was committed
  void unfinished();
  Stops takeStops() { return std::exchange(stops_, {}); }

 private:
  using Move = std::function<void()>;

  void ranToBreak();
  void take(Move move);
  void make(const Move& move);
  void stepNow(int count);
  void stepPhaseNow(bool backwards);
  void finishStepNow();  // unless a breakpoint stops it
  void commitStep();     // from where it stands, whatever breakpoints there are

  std::deque<Move> waiting_;
  bool moving_ = false;
  Stops stops_;
};

}  // namespace stepscope
