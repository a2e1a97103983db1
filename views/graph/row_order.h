// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of one container: the rank of each item, and its place within the row. Internal to the layout.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "views/graph/layout_state.h"

namespace stepscope {

struct Neighbour {
  int item = 0;
  float weight = 1;
};

// Neighbours of the items of one container, towards lower and higher numbers.
struct Adjacency {
  std::vector<int> start;
  std::vector<Neighbour> list;

  Adjacency(std::size_t count, const std::vector<std::pair<int, int>>& edges, bool incoming) : start(count + 1, 0) {
    for (const auto& [a, b] : edges) ++start[static_cast<std::size_t>(incoming ? b : a) + 1];
    for (std::size_t i = 1; i <= count; ++i) start[i] += start[i - 1];
    list.resize(edges.size());
    std::vector<int> fill(start.begin(), start.end() - 1);
    for (const auto& [a, b] : edges)
      list[static_cast<std::size_t>(fill[static_cast<std::size_t>(incoming ? b : a)]++)].item = incoming ? a : b;
  }
  const Neighbour* begin(int i) const { return list.data() + start[static_cast<std::size_t>(i)]; }
  const Neighbour* end(int i) const { return list.data() + start[static_cast<std::size_t>(i) + 1]; }
  Neighbour* begin(int i) { return list.data() + start[static_cast<std::size_t>(i)]; }
  Neighbour* end(int i) { return list.data() + start[static_cast<std::size_t>(i) + 1]; }
};

// Longest path over forward edges, then everything that has a consumer goes down to it. Indices of `in` and `out` are places
// in `members`.
void rankItems(LayoutState& state, const std::vector<int>& members, const Adjacency& in, const Adjacency& out);

// Barycentre sweeps over the rows of a column; sets Spot::x. Returns early when cancelled.
void orderRows(LayoutState& state, const std::vector<int>& members, const std::vector<std::vector<int>>& rows, Adjacency& in,
               Adjacency& out, int column, const std::atomic<bool>& cancel);

}  // namespace stepscope
