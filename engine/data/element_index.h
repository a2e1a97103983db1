// The place of an element in a tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace stepscope {

// One index for each axis, of element 0 … elements - 1 in row-major order; an empty axis has index 0.
inline Dims indexOf(std::int64_t element, const Dims& dims) {
  Dims index(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    const std::int64_t extent = std::max<std::int64_t>(1, dims[axis]);
    index[axis] = element % extent;
    element /= extent;
  }
  return index;
}

}  // namespace stepscope
