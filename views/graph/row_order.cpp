// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/row_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/graph/row_placement.h"

namespace stepscope {
namespace {
constexpr int kSweeps = 6;
constexpr float kInputPull = 0.002F;  // weight of an edge from an input: it follows its reader, not the other way round
constexpr float kLongPull = 0.1F;     // weight of an edge over several ranks
}  // namespace

void rankItems(LayoutState& state, const std::vector<int>& members, const Adjacency& in, const Adjacency& out) {
  const int count = static_cast<int>(members.size());
  bool loose = false;
  for (int i = 0; i < count; ++i) {
    int r = 0;
    for (const Neighbour* n = in.begin(i); n != in.end(i); ++n) {
      if (n->item < i) r = std::max(r, state.spot(members[static_cast<std::size_t>(n->item)]).rank + 1);
    }
    state.spot(members[static_cast<std::size_t>(i)]).rank = r;
    loose |= state.item(members[static_cast<std::size_t>(i)]).kind == ItemKind::kLoose;
  }
  for (int i = count - 1; i >= 0; --i) {
    int r = std::numeric_limits<int>::max();
    for (const Neighbour* n = out.begin(i); n != out.end(i); ++n) {
      if (n->item > i) r = std::min(r, state.spot(members[static_cast<std::size_t>(n->item)]).rank - 1);
    }
    if (r != std::numeric_limits<int>::max()) state.spot(members[static_cast<std::size_t>(i)]).rank = r;
  }
  // What belongs to all (a global norm) is computed after the whole gradient: above everything.
  if (!loose) return;
  for (const int m : members) state.spot(m).rank = state.item(m).kind == ItemKind::kLoose ? 0 : state.spot(m).rank + 1;
}

void orderRows(LayoutState& state, const std::vector<int>& members, const std::vector<std::vector<int>>& rows, Adjacency& in,
               Adjacency& out, int column, const std::atomic<bool>& cancel) {
  for (Adjacency* side : {&in, &out}) {
    for (int i = 0; i < static_cast<int>(members.size()); ++i) {
      for (Neighbour* n = side->begin(i); n != side->end(i); ++n) {
        const int span = std::abs(state.spot(members[static_cast<std::size_t>(n->item)]).rank -
                                  state.spot(members[static_cast<std::size_t>(i)]).rank);
        n->weight = span <= 1 ? 1.0F : kLongPull / static_cast<float>(span);
        if (state.isInput(members[static_cast<std::size_t>(n->item)])) n->weight *= kInputPull;
      }
    }
  }
  std::vector<RowEntry> entries;
  const auto wish = [&](const Adjacency& side, int local, float* x, float* weight) {
    double sum = 0, total = 0;
    for (const Neighbour* n = side.begin(local); n != side.end(local); ++n) {
      const Spot& s = state.spot(members[static_cast<std::size_t>(n->item)]);
      if (!s.in[column]) continue;
      sum += static_cast<double>(n->weight) * s.x[column];
      total += n->weight;
    }
    if (total <= 0) return false;
    *x = static_cast<float>(sum / total);
    *weight = static_cast<float>(total);
    return true;
  };
  for (int round = 0; round <= kSweeps; ++round) {
    if (cancel) return;
    // The first pass only takes overlaps away; then along the data flow and against it, ending along it.
    const bool along = round % 2 == 0;
    const bool downwards = along == (column == 0);
    const Adjacency &first = along ? in : out, &second = along ? out : in;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::vector<int>& row = rows[downwards ? k : rows.size() - 1 - k];
      entries.clear();
      for (const int local : row) {
        const Spot& s = state.spot(members[static_cast<std::size_t>(local)]);
        if (!s.in[column]) continue;
        RowEntry entry{.item = local, .wish = s.x[column], .left = s.left[column], .right = s.right[column]};
        const bool pulled =
            round > 0 && (wish(first, local, &entry.wish, &entry.weight) || wish(second, local, &entry.wish, &entry.weight));
        if (column == 0 && state.isInput(members[static_cast<std::size_t>(local)])) {
          entry.weight *= kInputPull;
          if (pulled) entry.wish -= 1;  // to the left of what it shares the row with
        }
        entries.push_back(entry);
      }
      if (entries.empty()) continue;
      placeRow(entries, kColumnGap);
      for (const RowEntry& e : entries) state.spot(members[static_cast<std::size_t>(e.item)]).x[column] = e.x;
    }
  }
}

}  // namespace stepscope
