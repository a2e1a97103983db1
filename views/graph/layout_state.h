// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of a layout share: the items, and where each stands in its container. Internal to the layout.
#pragma once

#include <vector>

#include "views/graph/layout_items.h"
#include "views/graph/layout_metrics.h"

namespace stepscope {

// Where an item stands within its container, before the container has a place itself.
struct Spot {
  int rank = 0;
  float x[2] = {0, 0};     // centre, per column
  float left[2] = {0, 0};  // extents from the centre; 0 when it has nothing in the column
  float right[2] = {0, 0};
  bool in[2] = {false, false};
  float height = 0;
  float weightX = 0, optimizerX = 0;  // left edges of the lanes
};

struct Extent {
  float width[2] = {0, 0};
  float height = 0;
  float spine[2] = {0, 0};  // x of the main line of nodes: what other things align with
  std::vector<float> rowY, rowHeight;
};

struct LayoutState {
  LayoutState(const GraphModel& graph, const std::unordered_set<std::string>& open)
      : model(graph),
        items(graph, open),
        spots(items.items.size()),
        extents(graph.groups().size()),
        level(static_cast<std::size_t>(graph.size()), 0),
        levels(items.items.size(), 0) {
    for (auto& widths : laneWidth) widths.resize(items.items.size(), 0);
  }

  const ModelNode& node(int i) const { return model.nodes()[static_cast<std::size_t>(i)]; }
  const LayoutItem& item(int i) const { return items.items[static_cast<std::size_t>(i)]; }
  Spot& spot(int i) { return spots[static_cast<std::size_t>(i)]; }
  static const std::vector<int>& stack(const LayoutItem& i, Lane lane) { return i.stack[static_cast<std::size_t>(lane)]; }
  bool isInput(int index) const { return item(index).node >= 0 && node(item(index).node).inputValue >= 0; }
  static float pitchOf(Lane lane) { return lane == Lane::kGradient ? kPitch : kSmallPitch; }
  static float stackHeight(int count, Lane lane) {
    return count == 0 ? 0 : static_cast<float>(count - 1) * pitchOf(lane) + kNodeHeight;
  }

  const GraphModel& model;
  LayoutItems items;
  std::vector<Spot> spots;          // by item
  std::vector<Extent> extents;      // by group
  std::vector<int> level;           // by node: above the others of its stack
  std::vector<int> levels;          // by item: of its two side lanes
  std::vector<float> laneWidth[2];  // by item: weight gradients, optimizer
};

}  // namespace stepscope
