// The sum in which a chain of elementwise nodes may end: ReduceSum, ReduceMean and ReduceToShape along leading or trailing
// axes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/passes/infer.h"

namespace stepscope {

struct ClosingSum {
  std::vector<std::int64_t> axes;  // of input 0, ascending
  bool mean = false;
  std::string refusal;  // why PointwiseSum cannot do it; empty where it can
};

// Nothing for a node that sums nothing, or whose extents or axes are not known.
std::optional<ClosingSum> closingSumOf(const Graph& graph, const Inference& inference, const Node& node);

}  // namespace stepscope
