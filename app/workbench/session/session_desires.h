// SPDX-License-Identifier: GPL-3.0-or-later
// Brings the worker to what is desired of it (DesiredState), whenever it can take it: at once where nothing runs, between
// two steps of a run, after a build, after a new worker came. What a cancel or a death took away is asked for again; what
// the worker refuses is taken back and said. The store shows what is desired.
#pragma once

#include <functional>

#include "app/workbench/session/desired_state.h"
#include "app/workbench/session/session_link.h"

namespace stepscope {

class SessionDesires : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionDesires(const SessionParts& parts) : SessionPart(parts) {}

  const DesiredState& desired() const { return desired_; }

  void setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints);
  void toggleBreakpoint(int instruction);
  void watch(int value, bool on);
  void pin(int value, bool on);
  // As one change; in the middle of a step for the next one. While something runs they wait: a run takes them before its
  // next step.
  void setOptions(const OptionSettings& settings);

  bool optionsWait() const { return !desired_.options().empty(); }
  bool waits() const { return optionsWait() || nextPin(); }  // for catchUp()
  bool optionsTouched() const { return optionsTouched_; }    // the worker has some for its next step
  void stepBegan() { optionsTouched_ = false; }              // what waited was taken
  // Whatever waits that makes another plan, between two moves; then `then`. Where the worker refuses, what runs ends.
  void catchUp(Then then);
  void reconcile();  // if the worker can take it now
  void becameIdle();

  // What the worker tells of its own.
  void told(const snapshot::SessionState& state);
  void told(const snapshot::OptionList& options);
  void planIsAnother();  // numbers that are asked for from now on may be of either plan, until planChanged()
  void planChanged(const ShownPlan& before);
  void workerDied();
  // Options that were sent when the worker died, or waited.
  OptionSettings takeSent() { return std::exchange(sent_, {}); }
  OptionSettings takeWaiting() { return desired_.takeOptions(); }
  void showOptionsBefore();  // those that were shown in advance were never had

  void leave();            // another model
  void keepOverLeaving();  // the same one comes again

 private:
  // What the worker has, as far as it told. A new one has nothing.
  struct Known {
    std::vector<snapshot::Breakpoint> breakpoints;
    std::vector<int> watched;
    DesiredState pinned;  // its values alone: they follow into another plan, as those of the worker do
  };

  bool ready() const;
  void show();
  void sendBreakpoints();
  void sendWatched();
  void answered(const Delivery& delivery, bool* asking, const Then& taken,
                const std::function<void(const QString& why)>& back);
  void refused(const std::vector<snapshot::Breakpoint>& sent, const QString& why);
  void sendOptions(Then then);
  void sendPin(Then then);
  std::optional<std::pair<int, bool>> nextPin() const;  // value and whether it is wanted
  void goOnAfterNewer(Then then);
  void showWanted(std::vector<snapshot::Option> workers);
  void sentWasTaken();

  DesiredState desired_;
  Known known_;
  std::optional<std::vector<snapshot::Breakpoint>> knownBefore_;  // in numbers of the plan before: the worker moves them
  bool askingBreakpoints_ = false, askingWatched_ = false;
  int tries_ = 0;  // since something else was desired: a worker that takes a wish and does not have it is not asked for ever
  OptionSettings sent_;  // and not answered
  bool optionsTouched_ = false;
  // Those of the worker, where others are shown in advance.
  std::optional<std::vector<snapshot::Option>> optionsBefore_;
  std::optional<ShownPlan> kept_;  // of the model that is left and comes again
  Selection keptSelection_;        // in that plan
};

// As settings of a configuration; those of precision.force take the place of earlier ones.
void addSettings(const OptionSettings& settings, snapshot::Configure& to);

}  // namespace stepscope
