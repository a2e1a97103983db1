// SPDX-License-Identifier: GPL-3.0-or-later
// Places things of one row next to each other: each as near as possible to where it wants to be, none overlapping.
#pragma once

#include <vector>

namespace stepscope {

struct RowEntry {
  int item = -1;     // caller's number
  float wish = 0;    // wanted x of its centre
  float weight = 1;  // of the wish, above 0
  float left = 0;    // extent to the left and right of the centre
  float right = 0;
  float x = 0;  // result
};

// Orders entries by wish (ties keep their order) and sets x to minimise Σ weight (x − wish)² with `gap` between neighbours.
// Exact: isotonic regression by pooling adjacent violators, O(n log n).
void placeRow(std::vector<RowEntry>& entries, float gap);

}  // namespace stepscope
