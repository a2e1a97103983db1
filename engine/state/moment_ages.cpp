#include "engine/state/moment_ages.h"

namespace stepscope {

std::int64_t MomentAges::of(const std::string& name, std::int64_t updates) const {
  const auto known = counts.find(name);
  return (known == counts.end() ? 0 : known->second) + (live && live->contains(name) ? updates - asOf : 0);
}

std::map<std::string, std::int64_t> MomentAges::all(std::int64_t updates) const {
  std::map<std::string, std::int64_t> ages = counts;
  if (live)
    for (const std::string& name : *live) ages[name] += updates - asOf;
  return ages;
}

}  // namespace stepscope
