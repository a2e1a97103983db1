// SPDX-License-Identifier: GPL-3.0-or-later
// Step states kept outside the worker, as files in a folder of their own: a worker that died comes back to one of them, and
// a rewind reaches steps that the new worker never ran.
//
// They take at most a quarter of what the disk has free, their own bytes counted as free; the oldest go first. A state of
// which two do not fit is not kept. They are not stored as differences: those of two steps, compressed, still take 0.64 of
// a state (tests/bench/RESULTS.md), and a state could be read only with all before it.
#pragma once

#include <QString>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace stepscope {

// Where the states lie: on this machine, or on that of the worker.
class StatePlace {
 public:
  virtual ~StatePlace() = default;
  virtual QString filePath(const QString& name) const = 0;  // empty where there is no place for files
  virtual std::int64_t freeBytes() const = 0;               // of its file system; 0 where it is not known
  // Of a state that was written there and holds about so many.
  virtual std::int64_t bytesOf(const QString& path, std::int64_t about) const = 0;
  virtual void remove(const QString& path) = 0;
};

class KeptStates {
 public:
  using Free = std::function<std::int64_t(const QString& folder)>;
  explicit KeptStates(Free free = freeBytes);  // in a folder of this machine
  // The states that are kept are gone with their place.
  void moveTo(std::unique_ptr<StatePlace> place);
  void moveHere();
  // Of another file in that place.
  QString filePath(const QString& name) const { return place_->filePath(name); }
  void remove(const QString& path) { place_->remove(path); }

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
  void add(std::int64_t step, const QString& path, std::size_t edits, std::int64_t about = 0);
  // The newest state at or before the step.
  std::optional<State> newest(std::int64_t step) const;
  std::optional<State> exactly(std::int64_t step) const;
  std::vector<std::int64_t> steps() const;  // of the states that are kept, ascending
  void dropAfter(std::int64_t step);        // a rewind forgets what came later
  void clear() { dropAfter(-1); }

 private:
  std::int64_t budget() const;
  std::int64_t held() const;  // bytes

  Free free_;
  std::unique_ptr<StatePlace> place_;
  std::vector<State> states_;  // ascending by step
  int made_ = 0;
};

}  // namespace stepscope
