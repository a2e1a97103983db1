// Which gradients are averaged over ranks together: few large messages instead of many small ones.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

// Between which nodes of the imported graph, counted in its order, a parameter is read. One that no node reads there: from
// the first to behind the last one.
struct ParameterUse {
  std::size_t first = 0, last = 0;
};

// Of each of `trained`, found by the name that it has in `graph`. The imported graph is the same on all ranks, while passes
// decide by the batch.
std::vector<ParameterUse> parameterUses(const Graph& imported, const Graph& graph, const std::vector<ValueId>& trained);

// Indices of parameters in the order in which their gradients are ready: the backward phase comes to the parameter last that
// the forward phase reads first.
std::vector<std::size_t> readyOrder(const std::vector<ParameterUse>& uses);

// Indices of parameters.
using GradientBucket = std::vector<std::size_t>;

// Gradients in the order of `ready`; a bucket ends before `bytes` (at least one gradient is in it), at another type, and
// where extents are not known. Parameters without a gradient are left out.
std::vector<GradientBucket> gradientBuckets(const Graph& graph, const std::vector<ValueId>& gradients,
                                            const std::vector<std::size_t>& ready, std::int64_t bytes);

}  // namespace stepscope
