// Two sequences that tell of one course of events, laid beside each other in order.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "storage/error.h"

namespace stepscope::storage {

// Pairs (i, j), ascending in both, that maximise the sum of score(i, j); a score of 0 is no pair. Scores are 0 to 100.
// Error: kLimitExceeded where a times b is above 100 million.
Result<std::vector<std::pair<int, int>>> align(int a, int b, const std::function<int(int, int)>& score);

}  // namespace stepscope::storage
