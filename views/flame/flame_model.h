// SPDX-License-Identifier: GPL-3.0-or-later
// Where the time of a range went, as a tree: phase → module → … → operator. Pure; any thread.
//
// A span counts with the part of it that lies in the range. Siblings stand in descending order of time,
// numbered blocks in that of their numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "views/common/snapshots.h"

namespace stepscope {

struct FlameNode {
  std::string name;      // last component of the path, or the op
  std::string path;      // module path, or the op's
  std::string category;  // of an op
  int depth = 0;
  int parent = -1;
  int node = -1;           // node id, where all spans are of one node
  std::vector<int> nodes;  // of an op: ids of all of them
  std::int64_t ns = 0;
  std::int64_t begin = 0;  // position in the picture: nanoseconds of the sum
  std::int64_t spans = 0;
};

struct FlameTree {
  std::vector<FlameNode> nodes;  // parents before children; 0 is the sum when there is anything
  std::int64_t ns = 0;

  // Ids of all nodes at entry `index` and below it.
  std::vector<int> nodesBelow(int index) const;

  // begin == end: everything.
  static FlameTree make(const std::vector<std::shared_ptr<const snapshot::StepRecord>>& steps, const PlanSnapshot* plan,
                        const GraphSnapshot* graph, std::int64_t begin, std::int64_t end);
};

}  // namespace stepscope
