// SPDX-License-Identifier: GPL-3.0-or-later
// Where the words next to lines stand: shapes at the middle of straight edges, names at stubs and at stubs that are drawn
// full. A stub's name keeps clear of boxes, lines, shapes and the name of a stub that faces it; where there is no room its
// dot alone says that there is more. GUI thread.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "views/graph/graph_paint_context.h"

namespace stepscope {

// What the shape of the edge covers; none where it is not written.
std::optional<BoxF> shapePlace(GraphPaintContext& g, const SceneEdge& edge);

// Room for a name of that width, above the curve of a stub that is drawn full: as near to its middle as no box and nothing
// that is `taken` is covered; none where the curve has no such place.
std::optional<BoxF> fullLabelPlace(GraphPaintContext& g, const std::array<PointF2, 4>& curve, double width,
                                   const std::vector<BoxF>& taken);

struct StubPlace {
  int edge = -1;  // the first of those that it stands for; -1: none
  int count = 0;
  QString label;
  double width = 0;  // room for the label
  float y = 0;       // of its line: above the middle of the box where a line of the graph begins or ends there
};
struct StubPlaces {
  StubPlace out, in;
};
// The stubs of a box as they are painted now: what is drawn in full has none.
StubPlaces stubPlaces(GraphPaintContext& g, int box);
// What the letters of a stub cover.
BoxF stubTextPlace(GraphPaintContext& g, int box, const StubPlace& stub, bool right);

}  // namespace stepscope
