// Concrete extents and checked arithmetic on them. Raw products of dims are forbidden elsewhere: use elementCount.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

using Dims = std::vector<std::int64_t>;

// Product of the extents; an error when one is negative or the product leaves int64.
Result<std::int64_t> checkedElementCount(std::span<const std::int64_t> dims);

// Product of extents already known to be valid; 1 for rank 0.
std::int64_t elementCount(std::span<const std::int64_t> dims);

// Row-major strides in elements.
Dims rowMajorStrides(std::span<const std::int64_t> dims);

// Multidirectional broadcasting of ONNX; an error that names both shapes when they do not fit.
Result<Dims> broadcastDims(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

// Maps -rank..rank-1 to 0..rank-1; nothing when out of range.
std::optional<std::int64_t> normalizeAxis(std::int64_t axis, std::int64_t rank);

// "[2, 8]"; "[]" for a scalar.
std::string dimsText(std::span<const std::int64_t> dims);

}  // namespace stepscope
