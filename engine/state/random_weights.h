// Contents for initializers whose data is not there, by role from a seed, so that a model can be profiled without its
// weights.
#pragma once

#include <cstdint>

#include "engine/state/state.h"
#include "kernels/cancel.h"

namespace stepscope {

// Whether any initializer of `graph` has neither data nor contents in the state.
bool lacksWeights(const Graph& graph, const State& state);

// Fills every such initializer: matrices about normally distributed with
// 1 / sqrt(fan in), at most 0.02; scales of norms 1; other vectors 0. The same numbers for the same seed and graph on any
// number of threads. Returns how many were filled. Errors: an extent that is not a number; kCancelled, which may leave one
// of them filled in part.
Result<std::size_t> fillMissingWeights(const Graph& graph, std::uint64_t seed, int threads, State& state,
                                       const Cancel& cancel = {});

}  // namespace stepscope
