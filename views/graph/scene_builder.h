// SPDX-License-Identifier: GPL-3.0-or-later
// From the places of items to the scene: boxes of nodes and groups, and the edges between them. Internal to the layout.
#pragma once

#include "views/graph/layout_state.h"
#include "views/graph/scene.h"

namespace stepscope {

// `state` is settled. Edges come without their ways: edge_router.h.
void buildScene(LayoutState& state, GraphScene& scene);

}  // namespace stepscope
