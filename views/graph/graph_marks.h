// SPDX-License-Identifier: GPL-3.0-or-later
// What is known about the nodes of a graph besides the graph itself: what ran, what is marked, what differs. Values by model
// node.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "views/common/snapshot_store.h"
#include "views/graph/plan_marks.h"

namespace stepscope {

enum class HeatKind : std::uint8_t { kNone, kTime, kBytes, kFlops, kBadNumbers, kPadding };
enum class Difference : std::uint8_t { kNone, kAdded, kRemoved, kChanged };

struct NodeMarks {
  bool inPlace = false;
  bool nondeterministic = false;
  bool breakpoint = false;
  bool waiting = false;  // not yet run in this step
  Difference difference = Difference::kNone;
  float heat = -1;  // share of the largest; -1 unknown
};

struct GroupMarks {
  std::int64_t ns[2] = {0, 0};  // last times, per column
  std::int64_t stashBytes = 0;  // forward values of the group that the gradient reads
  int waiting[2] = {0, 0};      // nodes that have not run in this step
  bool timed[2] = {false, false};
  bool breakpoint[2] = {false, false};
  float heat[2] = {-1, -1};
  int differences[2] = {0, 0};  // nodes added, removed or changed
};

struct GraphMarks {
  std::vector<NodeMarks> nodes;
  std::vector<GroupMarks> groups;  // by group, with everything below
  int current = -1;                // node of the next instruction
  bool inStep = false;
  double heatMost = 0;  // what a heat of 1 stands for
  HeatKind heat = HeatKind::kNone;

  static GraphMarks make(const PlanMarks& plan, const SnapshotStore& store, HeatKind heat);
};

// "time", "bytes moved" …; and a value of that kind as text.
QString heatName(HeatKind kind);
QString heatText(HeatKind kind, double value);

}  // namespace stepscope
