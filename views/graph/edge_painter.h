// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the edges of a graph: flow as lines or curves, long edges and stashes as stubs, those of the selected and the
// hovered box in full.
#pragma once

#include "views/graph/graph_paint_context.h"

namespace stepscope {

void paintFlow(GraphPaintContext& g);
void paintStubs(GraphPaintContext& g, int box);
void paintFullEdges(GraphPaintContext& g);

}  // namespace stepscope
