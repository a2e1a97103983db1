// A window over one to three spatial axes, as pooling, its gradients and Col2Im share it.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/kernel.h"
#include "kernels/window.h"

namespace stepscope::cpu {

inline constexpr std::size_t kAxes = 3;

// A pooling with exactly three spatial axes; missing ones lead with extent 1.
struct Pool {
  std::array<WindowAxis, kAxes> axes;
  std::array<std::int64_t, kAxes> in{1, 1, 1}, out{1, 1, 1};
  std::int64_t channels = 0, lanes = 1;  // of all images; how many of them lie side by side
  bool countsPadding = false;
  int threads = 1;

  std::int64_t inSize() const { return in[0] * in[1] * in[2]; }
  std::int64_t outSize() const { return out[0] * out[1] * out[2]; }
};

// The window of the attributes between x and y. Errors: kUnsupported for what the reference kernels are to serve, else
// extents that disagree.
Result<Pool> poolOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y);

// The outputs of one axis that see an input through tap `t`: [first, end).
struct Seeing {
  std::int64_t first = 0, end = 0;
};
inline Seeing seeingThrough(const WindowAxis& a, std::int64_t in, std::int64_t out, std::int64_t t) {
  const std::int64_t shift = t * a.dilation - a.padBegin;  // output o sees input o * stride + shift
  return {shift < 0 ? (-shift + a.stride - 1) / a.stride : 0,
          shift < in ? std::min(out, (in - 1 - shift) / a.stride + 1) : 0};
}

// body(tap, o, i, n): through tap number `tap` of the window the outputs o, o + 1 … o + n - 1 of one row see the inputs i, i
// + stride …, with the stride of the last axis. Tap by tap, so that a body is a loop along memory.
template <typename Body>
void forEachTapRow(const Pool& p, Body&& body) {
  std::int64_t tap = 0;
  for (std::int64_t a = 0; a < p.axes[0].kernel; ++a)
    for (std::int64_t b = 0; b < p.axes[1].kernel; ++b)
      for (std::int64_t c = 0; c < p.axes[2].kernel; ++c, ++tap) {
        const Seeing planes = seeingThrough(p.axes[0], p.in[0], p.out[0], a),
                     rows = seeingThrough(p.axes[1], p.in[1], p.out[1], b),
                     row = seeingThrough(p.axes[2], p.in[2], p.out[2], c);
        if (row.first >= row.end) continue;
        const auto source = [&](std::size_t axis, std::int64_t o, std::int64_t t) {
          return o * p.axes[axis].stride - p.axes[axis].padBegin + t * p.axes[axis].dilation;
        };
        for (std::int64_t i = planes.first; i < planes.end; ++i)
          for (std::int64_t j = rows.first; j < rows.end; ++j)
            body(tap, (i * p.out[1] + j) * p.out[2] + row.first,
                 (source(0, i, a) * p.in[1] + source(1, j, b)) * p.in[2] + source(2, row.first, c), row.end - row.first);
      }
}

}  // namespace stepscope::cpu
