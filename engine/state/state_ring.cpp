#include "engine/state/state_ring.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope {
namespace {
constexpr std::size_t kMostCopies = 1000;  // of a small state, a copy costs more than its bytes
}  // namespace

void StateRing::remember(const State& state, std::int64_t budget) {
  if (state.bytes() > budget) return;
  copies_.push_back(state.copy());
  bytes_ += copies_.back().bytes();
  while ((bytes_ > budget || copies_.size() > kMostCopies) && copies_.size() > 1) {
    const auto victim = copies_.size() > 2 ? copies_.begin() + 1 : copies_.begin();
    bytes_ -= victim->bytes();
    copies_.erase(victim);
  }
}

void StateRing::clear() {
  copies_.clear();
  bytes_ = 0;
}

std::vector<std::int64_t> StateRing::steps() const {
  std::vector<std::int64_t> steps;
  for (const StateSnapshot& copy : copies_) steps.push_back(copy.counters.step);
  return steps;
}

Status StateRing::rewind(std::int64_t step, State& state) {
  const auto it =
      std::find_if(copies_.begin(), copies_.end(), [&](const StateSnapshot& s) { return s.counters.step == step; });
  if (it == copies_.end()) {
    std::string known;
    for (const std::int64_t k : steps()) known += fmt::format("{}{}", known.empty() ? "" : ", ", k);
    return fail(ErrorCode::kNotFound,
                fmt::format("rewind: no state is kept for step {}; kept are {}", step, known.empty() ? "none" : known));
  }
  state.restore(*it);
  while (copies_.size() > static_cast<std::size_t>(it - copies_.begin()) + 1) {
    bytes_ -= copies_.back().bytes();
    copies_.pop_back();
  }
  return {};
}

}  // namespace stepscope
