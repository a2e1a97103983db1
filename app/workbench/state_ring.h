// SPDX-License-Identifier: GPL-3.0-or-later
// Step states kept outside the worker, as files in a folder of their own: a worker that died comes back to one of them, and
// a rewind reaches steps that the new worker never ran. The oldest go first when the budget is spent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/workbench/scratch_folder.h"

namespace stepscope {

class StateRing {
 public:
  explicit StateRing(std::int64_t budgetBytes) : budget_(budgetBytes) {}

  struct State {
    std::int64_t step = 0;  // the state before this step
    QString path;
    std::size_t edits = 0;  // of the session's log that it holds
    std::int64_t bytes = 0;
  };

  // A name no state has yet, for the worker to write to; empty when there is no place for files.
  QString freshPath();
  // A state that was written there. It takes the place of one of the same step.
  void add(std::int64_t step, const QString& path, std::size_t edits);
  // The newest state at or before the step.
  std::optional<State> newest(std::int64_t step) const;
  std::optional<State> exactly(std::int64_t step) const;
  void dropAfter(std::int64_t step);  // a rewind forgets what came later
  void clear() { dropAfter(-1); }

 private:
  ScratchFolder folder_;
  std::int64_t budget_;
  std::vector<State> states_;  // ascending by step
  int made_ = 0;
};

}  // namespace stepscope
