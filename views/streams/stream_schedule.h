// SPDX-License-Identifier: GPL-3.0-or-later
// When the instructions of a plan would run if they were on these streams: what waits for what, and the longest chain. The
// rules are those of the engine (engine/plan/order_streams.h): instructions of one stream run in order, whatever touches the
// same memory is ordered, and one of the CPU runs when it is issued.
#pragma once

#include <cstdint>
#include <vector>

#include "views/common/snapshots.h"

namespace stepscope {

struct StreamSchedule {
  static constexpr int kHost = -1;  // the lane of the CPU
  struct Slot {
    int lane = 0;  // kHost, or a stream
    std::int64_t begin = 0, end = 0;
    bool critical = false;
  };
  struct Wait {
    int from = 0, to = 0;  // `to` waits for `from`, of another lane
  };
  std::vector<Slot> places;   // by instruction; a view takes no time and is on no row
  std::vector<Wait> waits;    // those that nothing else implies
  std::vector<int> critical;  // the longest chain, in its order
  std::int64_t totalNs = 0;

  // `streams`: by instruction, below `count`. `ns`: how long each runs, 0 or more.
  static StreamSchedule of(const PlanSnapshot& plan, const std::vector<int>& streams, int count,
                           const std::vector<std::int64_t>& ns);
};

}  // namespace stepscope
