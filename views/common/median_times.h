// SPDX-License-Identifier: GPL-3.0-or-later
// How long each instruction takes as a rule: the first step of a plan is cold, and one step alone is an accident.
#pragma once

#include <cstdint>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

// Nanoseconds by instruction: the median of the newest steps of the present plan (15 at most, without its first one, which
// is warm-up, as soon as there is another; of an even number the mean of the middle two), or the last time where no step
// recorded it; -1 where it never ran.
std::vector<std::int64_t> medianTimes(const SnapshotStore& store);

}  // namespace stepscope
