// SPDX-License-Identifier: GPL-3.0-or-later
// Step states kept outside the worker, as files in a folder of their own: a worker that died comes back to one of them, and
// a rewind reaches steps that the new worker never ran.
//
// They take at most a quarter of what the disk has free, their own bytes counted as free; the oldest go first. A state of
// which two do not fit is not kept. They are not stored as differences: those of two steps, compressed, still take 0.64 of
// a state (tests/bench/RESULTS.md), and a state could be read only with all before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "app/workbench/scratch_folder.h"

namespace stepscope {

class StateRing {
 public:
  using Free = std::function<std::int64_t(const QString& folder)>;
  explicit StateRing(Free free = freeBytes) : free_(std::move(free)) {}

  // Of the file system that the folder is in; 0 where it is not known.
  static std::int64_t freeBytes(const QString& folder);

  struct State {
    std::int64_t step = 0;  // the state before this step
    QString path;
    std::size_t edits = 0;  // of the session's log that it holds
    std::int64_t bytes = 0;
  };

  // Whether states of this size are kept.
  bool fits(std::int64_t bytes) const { return 2 * bytes <= budget(); }
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
  std::int64_t budget() const;
  std::int64_t held() const;  // bytes

  ScratchFolder folder_;
  Free free_;
  std::vector<State> states_;  // ascending by step
  int made_ = 0;
};

}  // namespace stepscope
