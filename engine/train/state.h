// The step state: all that a step changes, keyed by imported name, in logical layout.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

// A copy of the state at the start of a micro step; the ring holds some.
struct StateSnapshot {
  std::int64_t step = 0, updates = 0, micro = 0;
  std::map<std::string, Tensor> tensors;
  std::int64_t bytes() const;
};

struct StateStore {
  std::int64_t step = 0;     // micro step that comes next
  std::int64_t updates = 0;  // updates done; the optimizer's moments know of as many
  std::int64_t updatesBefore =
      0;                   // that the schedule counts besides: --start-step begins in its middle, with moments of zero
  std::int64_t micro = 0;  // micro steps done in the present round of accumulation
  std::map<std::string, Tensor> tensors;

  std::int64_t scheduledUpdates() const { return updatesBefore + updates; }
  // The tensor of an initializer or state value: the one kept under its name, or a new one with the value's initial contents
  // (zeros where it has none). Errors: extents that are not numbers.
  Result<Tensor> obtain(const Value& value);
  StateSnapshot copy() const;
  // Copies contents back into the memory that plans are bound to; tensors that the snapshot lacks become zeros.
  void restore(const StateSnapshot& snapshot);
};

}  // namespace stepscope
