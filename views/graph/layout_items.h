// SPDX-License-Identifier: GPL-3.0-or-later
// First step of the layout: which things are visible, and in which open group each of them is placed.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "views/graph/layout.h"

namespace stepscope {

enum class ItemKind : std::uint8_t {
  kLeaf,    // a forward node or an input, with the gradient, weight, optimizer and aside nodes anchored at it
  kClosed,  // a closed group or a folded run
  kOpen,    // an open group
  kLoose,   // gradient and optimizer nodes of a group that have no anchor
};

struct LayoutItem {
  ItemKind kind = ItemKind::kLeaf;
  int node = -1;   // kLeaf
  int group = -1;  // kClosed: first of the run; kOpen
  int folded = 1;
  int container = 0;  // group whose box it stands in
  int local = -1;     // its place in members[container]
  int depth = 0;      // of the container
  // Nodes next to or above a leaf, by lane (kAside … kOptimizer), in execution order.
  std::array<std::vector<int>, 5> stack;
};

struct LayoutItems {
  std::vector<LayoutItem> items;
  std::vector<std::vector<int>> members;  // by group: items in it, in order of their first node; empty unless open
  std::vector<int> ofNode;                // model node → item
  std::vector<int> ofGroup;               // group → item of the open or closed group; -1

  LayoutItems(const GraphModel& model, const OpenGroups& open);

  // The two items of one common container that hold the nodes; equal when one item holds both.
  std::pair<int, int> common(int nodeA, int nodeB) const;

 private:
  int add(LayoutItem item);
  int openItem(int group);

  const GraphModel& model_;
  std::vector<int> box_;  // group → nearest group with a box, itself included
};

}  // namespace stepscope
