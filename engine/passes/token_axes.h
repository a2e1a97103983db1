// Axes and views, as token_flow.cpp and token_rules.cpp read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/passes/pattern.h"

namespace stepscope {

// The axis of a value of `rank` axes, counted from either end; nothing where it has no such axis.
inline std::optional<std::size_t> axisOf(std::int64_t axis, std::size_t rank) {
  const auto extent = static_cast<std::int64_t>(rank);
  if (axis < -extent || axis >= extent) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

// A node that gives its elements other axes, in the same order.
inline bool isView(const Node& node) {
  return isOp(node, "Reshape") || isOp(node, "Flatten") || isOp(node, "Squeeze") || isOp(node, "Unsqueeze");
}

}  // namespace stepscope
