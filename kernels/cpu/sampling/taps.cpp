#include "kernels/cpu/sampling/taps.h"

#include <algorithm>

#include "kernels/cpu/loops/loops.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

// A corner outside reads nothing, not even an infinity times 0.
template <bool kWhole>
SS_INLINE float valueAt(const float* plane, std::int32_t place) {
  return kWhole || place >= 0 ? plane[place] : 0.0F;
}

// Four corners at once where there are as many: the sum stays in a register.
template <bool kWhole, bool kAdd>
SS_CLONES void sumFour(const float* plane, const std::int32_t* place, const float* weight, std::int64_t stride, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t p = 0; p < n; ++p) {
    const float a = weight[p] * valueAt<kWhole>(plane, place[p]) + weight[p + stride] * valueAt<kWhole>(plane, place[p + stride]);
    const float b =
        weight[p + 2 * stride] * valueAt<kWhole>(plane, place[p + 2 * stride]) + weight[p + 3 * stride] * valueAt<kWhole>(plane, place[p + 3 * stride]);
    y[p] = kAdd ? y[p] + (a + b) : a + b;
  }
}
template <bool kWhole, bool kAdd>
SS_CLONES void sumOne(const float* plane, const std::int32_t* place, const float* weight, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t p = 0; p < n; ++p) {
    const float value = weight[p] * valueAt<kWhole>(plane, place[p]);
    y[p] = kAdd ? y[p] + value : value;
  }
}

template <bool kWhole>
SS_CLONES void largestOne(const float* plane, const std::int32_t* place, const float* weight, float* y, bool add, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t p = 0; p < n; ++p) {
    const float value = weight[p] * valueAt<kWhole>(plane, place[p]);
    y[p] = add && !(y[p] < value) ? y[p] : value;  // as std::max: what stands there wins over a NaN that comes
  }
}

template <bool kWhole>
SS_CLONES void correlateOne(const float* plane, const std::int32_t* place, const float* dy, float* sums, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t p = 0; p < n; ++p) sums[p] += dy[p] * valueAt<kWhole>(plane, place[p]);
}

}  // namespace

void sumTaps(const Taps& taps, const float* plane, float* y, bool add) {
  std::int64_t k = 0;
  for (; k + 4 <= taps.corners; k += 4) {
    const auto sum = taps.whole ? (add ? sumFour<true, true> : sumFour<true, false>) : (add ? sumFour<false, true> : sumFour<false, false>);
    sum(plane, taps.place + k * taps.stride, taps.weight + k * taps.stride, taps.stride, y, taps.points);
    add = true;
  }
  for (; k < taps.corners; ++k) {
    const auto sum = taps.whole ? (add ? sumOne<true, true> : sumOne<true, false>) : (add ? sumOne<false, true> : sumOne<false, false>);
    sum(plane, taps.place + k * taps.stride, taps.weight + k * taps.stride, y, taps.points);
    add = true;
  }
}

void largestTaps(const Taps& taps, const float* plane, float* y, bool add) {
  for (std::int64_t k = 0; k < taps.corners; ++k)
    (taps.whole ? largestOne<true> : largestOne<false>)(plane, taps.place + k * taps.stride, taps.weight + k * taps.stride, y, add || k > 0, taps.points);
}

void scatterTaps(const Taps& taps, const float* dy, float* plane) {
  for (std::int64_t k = 0; k < taps.corners; ++k) {
    const std::int32_t* place = taps.place + k * taps.stride;
    const float* weight = taps.weight + k * taps.stride;
    for (std::int64_t p = 0; p < taps.points; ++p)
      if (place[p] >= 0) plane[place[p]] += weight[p] * dy[p];
  }
}

void correlateTaps(const Taps& taps, const float* plane, const float* dy, float* sums) {
  for (std::int64_t k = 0; k < taps.corners; ++k)
    (taps.whole ? correlateOne<true> : correlateOne<false>)(plane, taps.place + k * taps.stride, dy, sums + k * taps.stride, taps.points);
}

}  // namespace stepscope::cpu
