// SPDX-License-Identifier: GPL-3.0-or-later
// A graph without the conversions between types of numbers: who reads a converted value reads its source.
//
// Left out are Cast nodes from one float type to another that somebody reads. A cast from or to whole numbers or bool
// belongs to the model, and one that nobody reads writes an output or a state.
#pragma once

#include <memory>
#include <unordered_map>

#include "views/common/snapshots.h"

namespace stepscope {

struct WithoutCasts {
  std::shared_ptr<const GraphSnapshot> graph;
  // Ids of nodes that are left out → of the nearest node before them that stays; -1: they convert an input or a parameter.
  std::unordered_map<int, int> standIn;

  // Any thread. Takes O(nodes + edges). A graph without casts comes back as it is.
  static WithoutCasts make(std::shared_ptr<const GraphSnapshot> from);
};

}  // namespace stepscope
