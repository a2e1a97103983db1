// A block of points and the elements of a plane that each of them reads, with weights: what GridSample and RoiAlign share. The taps are found
// once for all channels; then every plane is walked corner by corner, in loops over the points.
#pragma once

#include <cstdint>
#include <span>

namespace stepscope::cpu {

// Corner k of point p is place[k * stride + p], -1 for one that lies outside, with weight[k * stride + p].
struct Taps {
  std::int64_t points = 0, corners = 0, stride = 0;
  std::int32_t* place = nullptr;
  float* weight = nullptr;
  bool whole = true;  // no corner lies outside

  // Bytes for so many corners of so many points, and the table in them.
  static std::size_t bytes(std::int64_t corners, std::int64_t stride) {
    return static_cast<std::size_t>(corners * stride) * (sizeof(std::int32_t) + sizeof(float));
  }
  static Taps in(std::byte* memory, std::int64_t corners, std::int64_t stride) {
    auto* place = reinterpret_cast<std::int32_t*>(memory);
    return {0, 0, stride, place, reinterpret_cast<float*>(place + corners * stride), true};
  }
};

// y[p] = sum over the corners of weight * plane[place]; with `add` beside what stands there.
void sumTaps(const Taps& taps, const float* plane, float* y, bool add);
// As sumTaps, the largest product; `add` has what stands there compared too.
void largestTaps(const Taps& taps, const float* plane, float* y, bool add);
// plane[place] += weight * dy[p]
void scatterTaps(const Taps& taps, const float* dy, float* plane);
// sums[k * stride + p] += dy[p] * plane[place]
void correlateTaps(const Taps& taps, const float* plane, const float* dy, float* sums);

}  // namespace stepscope::cpu
