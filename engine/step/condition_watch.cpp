#include "engine/step/condition_watch.h"

#include <algorithm>

namespace stepscope {

void ConditionWatch::begin(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints) {
  next_ = 0;
  holds_ = false;
  std::vector<std::string> asked;
  for (const snapshot::Breakpoint& b : breakpoints)
    if (b.enabled() && b.condition_case() == snapshot::Breakpoint::kPredicate) asked.push_back(b.predicate());
  if (asked == asked_) return;
  asked_ = std::move(asked);
  places_.clear();
  const ExecutionPlan& plan = executor.plan();
  for (const std::string& text : asked_) {
    const auto predicate = parsePredicate(text);
    if (!predicate) continue;
    for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
      if (plan.instructions[i].kind != InstructionKind::kKernel) continue;
      for (const int b : plan.instructions[i].outputs) {
        const ValueId value = b < 0 ? ValueId{} : plan.buffers[static_cast<std::size_t>(b)].value;
        if (value && isNamed(executor.graph(), value, predicate->value))
          places_.push_back({static_cast<int>(i), value, *predicate});
      }
    }
  }
  std::ranges::stable_sort(places_, {}, &Place::instruction);
}

void ConditionWatch::after(const Executor& executor, int instruction, bool computed) {
  for (; next_ < places_.size() && places_[next_].instruction <= instruction; ++next_) {
    const Place& place = places_[next_];
    if (place.instruction < instruction || !computed || holds_) continue;
    if (const auto contents = executor.read(place.value)) holds_ = holdsFor(place.predicate, contents->view());
  }
}

}  // namespace stepscope
