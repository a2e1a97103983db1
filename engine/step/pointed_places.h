// What a person points at, by keys: breakpoints and watched values. Each plan gets them as ids of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/build/stage.h"
#include "engine/ir/place_key.h"
#include "engine/step/stepper.h"

namespace stepscope {

class PointedPlaces {
 public:
  // Remembers what the ids of `breakpoints` and `values` mean in the plan of `stepper`, or in a stage that led to it.
  void setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints, const Stepper& stepper,
                      std::span<const Stage> stages);
  void setWatched(const std::vector<ValueId>& values, const Stepper& stepper);

  // Writes the ids of this plan into the context. One line per breakpoint that stops nowhere in it, with the reason.
  std::vector<std::string> resolve(const Stepper& stepper, StepContext& context) const;

 private:
  struct Place {
    NodeKey node;
    PlaceKey instruction;
    ValueKey value;  // of a predicate
  };
  std::vector<Place> breakpoints_;  // in the order of the context's
  std::vector<ValueKey> watched_;
};

// The node that each instruction computes; invalid for copies and commits.
std::vector<NodeId> nodesOf(const ExecutionPlan& plan);

}  // namespace stepscope
