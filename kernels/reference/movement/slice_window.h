// The window that the operands of Slice cut from a tensor. Source: ONNX Slice-13, with its clamping.
#pragma once

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

struct SliceWindow {
  std::size_t rank = 0;
  Extents extents{}, starts{}, steps{};
};

// What (starts, ends, axes?, steps?), beginning at input `first`, cut from shape `data`. Errors: operands of different
// lengths, an axis out of range, a step of 0, a rank above kMaxRank.
Result<SliceWindow> sliceWindow(const KernelSpec& spec, const KernelCall& call, const Dims& data, std::size_t first);

}  // namespace stepscope::reference
