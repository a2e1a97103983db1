// Windows that slide over up to three spatial axes: which input position an output position reads through a tap, and the
// other way round. Positions and taps are row-major.
#pragma once

#include <optional>

#include "kernels/cuda/body.h"
#include "kernels/window.h"

namespace stepscope::cuda {

inline constexpr int kMostSpatial = 3;

// Spatial extents outermost first; sizes are their products.
struct Windows {
  std::int64_t inSize = 1, outSize = 1, taps = 1;
  int rank = 0;
  std::int64_t in[kMostSpatial] = {}, out[kMostSpatial] = {}, kernel[kMostSpatial] = {}, stride[kMostSpatial] = {},
               dilation[kMostSpatial] = {}, pad[kMostSpatial] = {}, padEnd[kMostSpatial] = {};

  // The position in x that output position `o` reads through tap `t`; -1: padding.
  SS_DEVICE std::int64_t inputAt(std::int64_t o, std::int64_t t) const {
    std::int64_t position = 0, scale = 1;
    for (int a = rank - 1; a >= 0; --a) {
      const std::int64_t i = o % out[a] * stride[a] - pad[a] + t % kernel[a] * dilation[a];
      if (i < 0 || i >= in[a]) return -1;
      position += i * scale;
      scale *= in[a];
      o /= out[a];
      t /= kernel[a];
    }
    return position;
  }
  // The output position that reads input position `i` through tap `t`; -1: none.
  SS_DEVICE std::int64_t outputAt(std::int64_t i, std::int64_t t) const {
    std::int64_t position = 0, scale = 1;
    for (int a = rank - 1; a >= 0; --a) {
      const std::int64_t strided = i % in[a] + pad[a] - t % kernel[a] * dilation[a];
      if (strided < 0 || strided % stride[a] != 0 || strided / stride[a] >= out[a]) return -1;
      position += strided / stride[a] * scale;
      scale *= out[a];
      i /= in[a];
      t /= kernel[a];
    }
    return position;
  }
  // Elements under the window at output position `o`; `padded`: those of the padding too, not what lies beyond it.
  SS_DEVICE std::int64_t elementsAt(std::int64_t o, bool padded) const {
    std::int64_t count = 1;
    for (int a = rank - 1; a >= 0; --a) {
      const std::int64_t begin = o % out[a] * stride[a] - pad[a];
      const std::int64_t end = padded ? in[a] + padEnd[a] : in[a];
      const std::int64_t fitting = end <= begin ? 0 : (end - begin + dilation[a] - 1) / dilation[a];
      const std::int64_t before = padded || begin >= 0 ? 0 : (-begin + dilation[a] - 1) / dilation[a];
      const std::int64_t last = fitting < kernel[a] ? fitting : kernel[a];
      count *= last > before ? last - before : 0;
      o /= out[a];
    }
    return count;
  }
};

// None: more than three axes. Pads must be resolved.
inline std::optional<Windows> windowsOf(const Window& window, const Dims& in, const Dims& out) {
  if (window.axes.size() > kMostSpatial) return std::nullopt;
  Windows w;
  w.rank = static_cast<int>(window.axes.size());
  w.inSize = elementCount(in);
  w.outSize = elementCount(out);
  for (std::size_t a = 0; a < window.axes.size(); ++a) {
    const WindowAxis& axis = window.axes[a];
    w.in[a] = in[a];
    w.out[a] = out[a];
    w.kernel[a] = axis.kernel;
    w.stride[a] = axis.stride;
    w.dilation[a] = axis.dilation;
    w.pad[a] = axis.padBegin;
    w.padEnd[a] = axis.padEnd;
    w.taps *= axis.kernel;
  }
  return w;
}

}  // namespace stepscope::cuda
