// Counters of a run: its place in data, schedule and accumulation, and what a dynamic loss scale and optimizer state have
// come to. Copies are cheap. The State changes them when a step is committed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/state/moment_ages.h"

namespace stepscope {

// Of a dynamic factor of the gradients (engine/build/loss_scale.h).
struct LossScale {
  double factor = 0;              // 0: the first update has not come
  std::int64_t cleanUpdates = 0;  // since the factor changed

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

// Where a run stands, besides the contents of its tensors.
struct StateCounters {
  std::int64_t step = 0;     // micro step that comes next
  std::int64_t updates = 0;  // updates done
  std::int64_t updatesBefore =
      0;                   // counted by the schedule besides: --start-step begins in its middle, with moments of zero
  std::int64_t micro = 0;  // micro steps done in the present round of accumulation
  // Of that round, which is none where micro is 0: its micro steps (option accumulate), and the loss scale that the sums of
  // gradients are multiplied by. 0: not known.
  std::int64_t roundOf = 0;
  double sumScale = 0;
  std::shared_ptr<const MomentAges> moments;  // null: no optimizer state has had an update
  // Which entry of the data the coming step takes, and what its random keys are made of: `step` in a process that trains
  // alone; ranks take entries in turn.
  std::int64_t entry = 0;
  LossScale lossScale;

  std::int64_t scheduledUpdates() const { return updatesBefore + updates; }
  // Updates that this optimizer state has had.
  std::int64_t updatesOf(const std::string& state) const { return moments ? moments->of(state, updates) : 0; }
  // Updates from here on are those of these states alone.
  void willUpdate(const StateNameSet& states);
};

}  // namespace stepscope
