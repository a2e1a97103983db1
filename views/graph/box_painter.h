// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the boxes of a graph: one pixel each, flat, or with frame, category stripe, names and badges, as the zoom allows.
#pragma once

#include "views/graph/graph_paint_context.h"

namespace stepscope {

// All boxes in view. Dots are for boxes under two pixels, which `shown` does not list.
void paintDots(GraphPaintContext& g);
void paintFlat(GraphPaintContext& g);
// One box of `shown` in full.
void paintNode(GraphPaintContext& g, int box);
void paintClosed(GraphPaintContext& g, int box);

}  // namespace stepscope
