// SPDX-License-Identifier: GPL-3.0-or-later
// Two graphs of one build as one picture: nodes of both, marked added, removed or changed.
//
// Node ids keep their meaning over all phases of a build. A node is *changed* when its op, inputs, outputs or attributes
// differ. In the united graph, removed nodes stand before the first node that comes after them in the older graph; values
// are those of the newer graph where both have them.
#pragma once

#include <memory>
#include <unordered_map>

#include "views/common/snapshots.h"
#include "views/graph/graph_marks.h"

namespace stepscope {

struct PhaseDiff {
  std::shared_ptr<const GraphSnapshot> united;
  std::unordered_map<int, Difference> byNode;  // node id; absent = equal
  int added = 0, removed = 0, changed = 0;

  // The difference from `before` to `after`. Any thread.
  static PhaseDiff make(const GraphSnapshot& before, const GraphSnapshot& after);
};

}  // namespace stepscope
