// Conditions on values (breakpoints with a predicate) in a step at full speed: each is looked at right after the instruction
// that makes its value, as a walk does (breakpoint.h). A step in which one holds is taken back, to be walked to that place.
#pragma once

#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/step/breakpoint.h"

namespace stepscope {

class ConditionWatch {
 public:
  // A step begins under these breakpoints; of other conditions than before the places in the plan are looked up.
  void begin(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints);
  bool any() const { return !places_.empty(); }  // whether after() is wanted
  bool ofUpdate(const ExecutionPlan& plan) const { return any() && places_.back().instruction >= plan.firstOptimizer; }
  // `computed` is false when a condition of the graph or the update kept the instruction from running.
  void after(const Executor& executor, int instruction, bool computed);
  bool hold() const { return holds_; }  // one of them, in the step that runs or ran last

 private:
  struct Place {
    int instruction = 0;
    ValueId value;
    ValuePredicate predicate;
  };
  std::vector<std::string> asked_;
  std::vector<Place> places_;  // ascending
  std::size_t next_ = 0;
  bool holds_ = false;
};

}  // namespace stepscope
