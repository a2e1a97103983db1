// Copies of the state at the starts of past micro steps, within a budget, so that a run can go back to one of them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/state/state.h"

namespace stepscope {

class StateRing {
 public:
  // Adds a copy of the present state, unless it alone is larger than `budget` bytes. Above the budget, and above 1,000
  // copies, the oldest but one goes: the first state of the run stays within reach as long as it fits.
  void remember(const State& state, std::int64_t budget);
  bool endsAt(std::int64_t step) const { return !copies_.empty() && copies_.back().counters.step == step; }
  bool empty() const { return copies_.empty(); }
  void clear();

  std::vector<std::int64_t> steps() const;  // oldest first
  // Puts the state back to the start of `step` and forgets later copies. Error: kNotFound, naming the steps that are kept.
  Status rewind(std::int64_t step, State& state);

 private:
  std::deque<StateSnapshot> copies_;
  std::int64_t bytes_ = 0;
};

}  // namespace stepscope
