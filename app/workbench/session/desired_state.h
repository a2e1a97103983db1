// SPDX-License-Identifier: GPL-3.0-or-later
// What a person wants of the worker, whatever it is doing just now: breakpoints, watched values, values whose memory is
// kept, options. Places are numbers of the plan that is shown; the names that they have follow them into another plan.
#pragma once

#include <QStringList>
#include <set>
#include <string>
#include <vector>

#include "app/workbench/session/session_part.h"

namespace stepscope {

struct ShownPlan {
  GraphPtr graph;
  PlanPtr plan;
};

// The same nodes and values in another plan, by their names; what has no place there is left out.
Selection selectionIn(const Selection& selection, const ShownPlan& before, const ShownPlan& after);

class DesiredState {
 public:
  const std::vector<snapshot::Breakpoint>& breakpoints() const { return breakpoints_; }
  // Those of id 0 get a number that none had before.
  void setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints);

  // Values that this plan has, in the order in which they were asked for.
  std::vector<int> watched() const { return here(watched_); }
  std::vector<int> pinned() const { return here(pinned_); }
  void setWatched(const std::vector<int>& values, const ShownPlan& shown) { set(watched_, values, shown); }
  void setPinned(const std::vector<int>& values, const ShownPlan& shown) { set(pinned_, values, shown); }

  // Options that the worker does not have yet, each once.
  const OptionSettings& options() const { return options_; }
  void setOptions(const OptionSettings& settings);
  OptionSettings takeOptions() { return std::exchange(options_, {}); }
  void giveBack(const OptionSettings& settings);  // where none of the same name was set since

  // Of those that the worker `knew` and that are desired as they were: as it has them `now`. What was desired since is in
  // numbers of the plan before.
  std::vector<snapshot::Breakpoint> movedByWorker(const std::vector<snapshot::Breakpoint>& knew,
                                                  const std::vector<snapshot::Breakpoint>& now) const;
  // The same in another plan: as the worker `moved` those breakpoints that it knew, by id; others, and values, by the names
  // of what they point at. Returns what has no place there: a breakpoint is dropped, a value waits for a plan that has it.
  QStringList moveTo(const ShownPlan& before, const ShownPlan& after, const std::vector<snapshot::Breakpoint>& moved);
  // What names no place of a model stays for the next one.
  void leaveModel();

 private:
  struct Value {
    std::string name;
    int id = -1;  // -1: the plan has none of the name
  };

  static std::vector<int> here(const std::vector<Value>& values);
  static void set(std::vector<Value>& values, const std::vector<int>& ids, const ShownPlan& shown);

  std::vector<snapshot::Breakpoint> breakpoints_;
  int nextBreakpoint_ = 1;
  std::vector<Value> watched_, pinned_;
  OptionSettings options_;
};

bool same(const std::vector<snapshot::Breakpoint>& a, const std::vector<snapshot::Breakpoint>& b);

}  // namespace stepscope
