// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/row_placement.h"

#include <algorithm>

namespace stepscope {

void placeRow(std::vector<RowEntry>& entries, float gap) {
  if (entries.size() == 1) {
    entries[0].x = entries[0].wish;
    return;
  }
  std::stable_sort(entries.begin(), entries.end(), [](const RowEntry& a, const RowEntry& b) { return a.wish < b.wish; });
  // With the distances to the first entry taken off, "no overlap" becomes "ascending".
  struct Pool {
    double sum, weight;
    std::size_t end;
  };
  thread_local std::vector<Pool> pools;
  pools.clear();
  double distance = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) distance += entries[i - 1].right + entries[i].left + gap;
    entries[i].x = static_cast<float>(distance);
    Pool pool{(entries[i].wish - distance) * entries[i].weight, entries[i].weight, i + 1};
    while (!pools.empty() && pools.back().sum * pool.weight >= pool.sum * pools.back().weight) {
      pool.sum += pools.back().sum;
      pool.weight += pools.back().weight;
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  std::size_t i = 0;
  for (const Pool& pool : pools) {
    const auto x = static_cast<float>(pool.sum / pool.weight);
    for (; i < pool.end; ++i) entries[i].x += x;
  }
}

}  // namespace stepscope
