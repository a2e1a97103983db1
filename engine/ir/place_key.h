// Where a paused step stands, in words that another plan understands.
//
// A position is the index of the next instruction, 0 … number of instructions; an order lists the node of each instruction
// (an invalid id where it has none).
#pragma once

#include <span>
#include <vector>

#include "engine/ir/key_index.h"

namespace stepscope {

// A position by the keys around it.
struct PlaceKey {
  static constexpr std::size_t kNeighbours = 16;
  NodeKey next;                 // the next instruction that has a key; invalid where none follows
  int unnamed = 0;              // instructions without a key that run before `next`, or before the end
  std::vector<NodeKey> before;  // the last that ran, newest first, at most kNeighbours
  std::vector<NodeKey> after;   // those that follow `next`, at most kNeighbours
  friend bool operator==(const PlaceKey&, const PlaceKey&) = default;
};

// Precondition: 0 <= position <= order.size().
PlaceKey placeOf(const KeyIndex& index, std::span<const NodeId> order, int position);

// The position of `place` in this plan: before the instruction that computes `next`, or else into which it was fused; else
// after the newest of `before` that is there; else before the first of `after` that is there; else 0. A place at the end is
// the end. In the plan from which placeOf made the place, and in an identical one, that is the same position exactly.
int findPlace(const PlaceKey& place, const KeyIndex& index, std::span<const NodeId> order);

// The position in the new plan that stands for `position` in the old one: before the instruction that computes the same key
// as the next one; where there is none, or where it moved past others, after the last instruction that ran before and is
// there. Later positions never map earlier, the start maps to the start and the end to the end, and equal plans map every
// position to itself. Going back, the caller uses findPlace with the place that it remembers of the old plan: that gives the
// position exactly. O(n log n).
int mapPosition(const KeyIndex& from, std::span<const NodeId> fromOrder, int position, const KeyIndex& to,
                std::span<const NodeId> toOrder);
// The same for all positions 0 … fromOrder.size() at once.
std::vector<int> mapPositions(const KeyIndex& from, std::span<const NodeId> fromOrder, const KeyIndex& to,
                              std::span<const NodeId> toOrder);

}  // namespace stepscope
