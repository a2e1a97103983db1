#include "engine/lab/delta_debugging.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace stepscope {
namespace {

// Part `index` of `parts` of about equal size.
std::vector<std::size_t> partOf(const std::vector<std::size_t>& set, std::size_t parts, std::size_t index) {
  const auto at = [&](std::size_t i) { return set.begin() + static_cast<std::ptrdiff_t>(set.size() * i / parts); };
  return {at(index), at(index + 1)};
}

std::vector<std::size_t> without(const std::vector<std::size_t>& set, const std::vector<std::size_t>& part) {
  std::vector<std::size_t> rest;
  std::set_difference(set.begin(), set.end(), part.begin(), part.end(), std::back_inserter(rest));
  return rest;
}

}  // namespace

Result<std::vector<std::size_t>> smallestSet(std::size_t count,
                                             const std::function<Result<bool>(const std::vector<std::size_t>& set)>& shows) {
  std::vector<std::size_t> set(count);
  std::iota(set.begin(), set.end(), std::size_t{0});
  std::size_t parts = 2;
  while (set.size() > 1) {
    parts = std::min(parts, set.size());
    bool smaller = false;
    for (std::size_t i = 0; i < parts && !smaller; ++i) {
      std::vector<std::size_t> part = partOf(set, parts, i);
      SS_ASSIGN(const bool alone, shows(part));
      if (!alone) continue;
      set = std::move(part);
      parts = 2;
      smaller = true;
    }
    for (std::size_t i = 0; i < parts && !smaller && parts > 2; ++i) {
      std::vector<std::size_t> rest = without(set, partOf(set, parts, i));
      SS_ASSIGN(const bool still, shows(rest));
      if (!still) continue;
      set = std::move(rest);
      parts = std::max<std::size_t>(parts - 1, 2);
      smaller = true;
    }
    if (smaller) continue;
    if (parts == set.size()) break;
    parts *= 2;
  }
  return set;
}

}  // namespace stepscope
