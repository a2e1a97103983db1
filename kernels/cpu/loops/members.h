// Work on several tensors that is split over threads as if they lay behind each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepscope::cpu {

class Members {
 public:
  void add(std::int64_t elements) { ends_.push_back(total() + elements); }
  std::size_t count() const { return ends_.size(); }
  std::int64_t total() const { return ends_.empty() ? 0 : ends_.back(); }

  // body(member, from, to) for what the range [begin, end) of all elements covers of each tensor.
  template <typename Body>
  void within(std::int64_t begin, std::int64_t end, Body&& body) const {
    auto m = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
    for (; m < ends_.size() && begin < end; ++m) {
      const std::int64_t start = m == 0 ? 0 : ends_[m - 1], until = std::min(end, ends_[m]);
      body(m, begin - start, until - start);
      begin = until;
    }
  }

 private:
  std::vector<std::int64_t> ends_;
};

}  // namespace stepscope::cpu
