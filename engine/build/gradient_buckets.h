// Which gradients are averaged over ranks together: few large messages instead of many small ones.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

// Indices of `trained` in the order in which their gradients are ready: the backward phase comes to the parameter last that
// the forward phase reads first. It is read off the imported graph, in whose initializers parameters are found by the names
// that they have in `graph`: that is the same on all ranks, while passes decide by the batch.
std::vector<std::size_t> readyOrder(const Graph& imported, const Graph& graph, const std::vector<ValueId>& trained);

// Indices of parameters.
using GradientBucket = std::vector<std::size_t>;

// Gradients in the order of `ready`; a bucket ends before `bytes` (at least one gradient is in it), at another type, and
// where extents are not known. Parameters without a gradient are left out.
std::vector<GradientBucket> gradientBuckets(const Graph& graph, const std::vector<ValueId>& gradients,
                                            const std::vector<std::size_t>& ready, std::int64_t bytes);

}  // namespace stepscope
