// SPDX-License-Identifier: GPL-3.0-or-later
// The laid-out graph: boxes and lines in scene units (1 unit = 1 pixel at 100 %), ready to be painted. No Qt.
//
// Boxes come parents before children. A closed group, or a run of equal closed groups ("folded"), has one box per column
// that it has nodes in. Immutable once laid out; shared between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "views/drawing/grid_index.h"
#include "views/graph/graph_model.h"

namespace stepscope {

enum class BoxKind : std::uint8_t { kNode, kInput, kOpenGroup, kClosedGroup };

struct SceneBox {
  BoxF at;
  BoxKind kind = BoxKind::kNode;
  Lane lane = Lane::kForward;
  bool gradient = false;  // in the right column
  int node = -1;          // model node of kNode and kInput
  int group = -1;         // group of kOpenGroup and kClosedGroup; the first one of a folded run
  int folded = 1;         // groups in the run
};

enum class EdgeKind : std::uint8_t {
  kFlow,   // drawn as its path
  kStash,  // forward → gradient: a stub at both ends, drawn full for the selected node
  kLong,   // too long or in the way of other boxes: a stub at both ends as well
};

struct SceneEdge {
  int from = -1, to = -1;  // boxes
  int value = -1;          // index into graph.values(): the first one that the edge carries
  int values = 1;          // values that the edge carries
  EdgeKind kind = EdgeKind::kFlow;
  bool straight = false;  // has room for a label next to its middle
  int firstPoint = 0;     // path: one start point, then three points per cubic curve; none for stubs
  int points = 0;
};

struct PointF2 {
  float x = 0, y = 0;
};

struct GraphScene {
  std::shared_ptr<const GraphModel> model;
  std::vector<SceneBox> boxes;
  std::vector<SceneEdge> edges;
  std::vector<PointF2> points;
  BoxF bounds;
  float columnGap = 0;                     // x of the line between the columns; 0 without a gradient column
  GridIndex leaves;                        // of nodes, inputs and closed groups, by box number (open groups are never found)
  GridIndex lines;                         // of edges by number: what their path or straight line covers
  std::vector<int> openGroups;             // boxes, outer before inner
  std::vector<int> boxOfNode;              // by model node: its box, or that of the closed group that hides it
  std::vector<int> edgeStart, edgesOfBox;  // edges that begin or end at a box

  std::pair<const int*, const int*> edgesAt(int box) const {
    return {edgesOfBox.data() + edgeStart[static_cast<std::size_t>(box)],
            edgesOfBox.data() + edgeStart[static_cast<std::size_t>(box) + 1]};
  }
};

}  // namespace stepscope
