#include "kernels/reference/linear/taps.h"

#include <algorithm>

namespace stepscope::reference {
namespace {

// Extends every partial tap by one axis; `match` gives the position for tap t of the axis, or -1.
template <typename Match>
void extend(std::vector<Tap>& taps, std::int64_t kernel, std::int64_t extent, Match&& match) {
  std::vector<Tap> next;
  next.reserve(taps.size());
  for (const Tap& tap : taps)
    for (std::int64_t t = 0; t < kernel; ++t)
      if (const std::int64_t p = match(t); p >= 0) next.push_back({tap.tap * kernel + t, tap.position * extent + p});
  taps.swap(next);
}

Dims coordinates(std::int64_t index, const Dims& extents) {
  Dims result(extents.size());
  for (std::size_t i = extents.size(); i-- > 0;) {
    result[i] = index % extents[i];
    index /= extents[i];
  }
  return result;
}

}  // namespace

void tapsOfOutput(const Window& window, const Dims& in, const Dims& out, std::int64_t o, std::vector<Tap>& taps) {
  taps.assign(1, {});
  const Dims at = coordinates(o, out);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const WindowAxis& a = window.axes[i];
    extend(taps, a.kernel, in[i], [&](std::int64_t t) {
      const std::int64_t p = at[i] * a.stride - a.padBegin + t * a.dilation;
      return p >= 0 && p < in[i] ? p : -1;
    });
  }
}

void tapsOfInput(const Window& window, const Dims& in, const Dims& out, std::int64_t index, std::vector<Tap>& taps) {
  taps.assign(1, {});
  const Dims at = coordinates(index, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const WindowAxis& a = window.axes[i];
    extend(taps, a.kernel, out[i], [&](std::int64_t t) {
      const std::int64_t p = at[i] + a.padBegin - t * a.dilation;
      return p >= 0 && p % a.stride == 0 && p / a.stride < out[i] ? p / a.stride : -1;
    });
  }
}

std::int64_t paddedCount(const Window& window, const Dims& in, const Dims& out, std::int64_t o) {
  std::int64_t count = 1;
  const Dims at = coordinates(o, out);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const WindowAxis& a = window.axes[i];
    const std::int64_t room = in[i] + a.padEnd - (at[i] * a.stride - a.padBegin);
    count *= std::min(a.kernel, (room + a.dilation - 1) / a.dilation);
  }
  return count;
}

}  // namespace stepscope::reference
