// The smallest set that shows something, found by trying few of them.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

// `shows` of a subset of 0 … count-1, in rising order; it holds for all of them together. The set that is returned shows it,
// and shows it no more when any single member is left out. At most O(n²) calls, O(log n) where one member is the cause.
// Errors are those of `shows`. Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002: ddmin.
Result<std::vector<std::size_t>> smallestSet(std::size_t count,
                                             const std::function<Result<bool>(const std::vector<std::size_t>& set)>& shows);

}  // namespace stepscope
