// How many updates each optimizer state has had: what Adam's bias correction counts.
//
// State that a plan brings in later (another optimizer, a parameter that is trained from here on) begins at 0, as a new
// optimizer of PyTorch does; state that no plan updates for a while keeps its number. Nothing is counted per step: of the
// states that the running plan updates, all have had each update since `asOf`. Immutable, so that copies of counters share
// it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace stepscope {

using StateNameSet = std::shared_ptr<const std::set<std::string>>;

struct MomentAges {
  std::map<std::string, std::int64_t> counts;  // at update `asOf`, by name of the state; absent: 0
  std::int64_t asOf = 0;
  StateNameSet live;  // have had every update since; null: none has

  // After `updates` updates of the run.
  std::int64_t of(const std::string& name, std::int64_t updates) const;
  // The same of every name that is known.
  std::map<std::string, std::int64_t> all(std::int64_t updates) const;
};

}  // namespace stepscope
