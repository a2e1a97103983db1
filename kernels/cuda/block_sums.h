// Sums, largest values and running sums over the threads of a block, in an order that depends on the number of threads
// alone.
#pragma once

#include "kernels/cuda/body.h"

namespace stepscope::cuda {

inline constexpr int kWarps = 32;  // the most a block has

// How two values are joined.
struct Plus {
  template <typename T>
  SS_DEVICE static T of(T a, T b) {
    return a + b;
  }
};
// A NaN wins.
struct Larger {
  template <typename T>
  SS_DEVICE static T of(T a, T b) {
    return a != a || a > b ? a : b;
  }
};
struct Smaller {
  template <typename T>
  SS_DEVICE static T of(T a, T b) {
    return a != a || a < b ? a : b;
  }
};
struct Times {
  template <typename T>
  SS_DEVICE static T of(T a, T b) {
    return a * b;
  }
};
// log(exp(a) + exp(b)), also of infinities. A NaN wins.
struct LogPlus {
  SS_DEVICE static double of(double a, double b) {
    if (a == b) return a + 0.69314718055994531;
    const double most = a > b ? a : b, least = a > b ? b : a;
    return most + log1p(exp(least - most));
  }
};

// Joins one value of every thread; all threads get the result. The block is made of whole warps. May be called again at
// once.
template <typename Join, typename T>
SS_DEVICE T joinBlock(T value) {
  SS_SHARED(T, ofWarp, kWarps);
  for (int lanes = 16; lanes > 0; lanes /= 2) value = Join::of(value, gpu::shuffleXor(value, lanes));
  const int warps = gpu::blockSize() / 32;
  if (warps == 1) return value;
  if (gpu::threadIndex() % 32 == 0) ofWarp[gpu::threadIndex() / 32] = value;
  gpu::syncThreads();
  value = ofWarp[0];
  for (int w = 1; w < warps; ++w) value = Join::of(value, static_cast<T>(ofWarp[w]));
  gpu::syncThreads();  // before the array is written again
  return value;
}

// The sum of the values of all threads up to this one, its own included. The block is made of whole warps. May be called
// again at once.
template <typename T>
SS_DEVICE T scanBlock(T value) {
  SS_SHARED(T, ofWarp, kWarps);
  const int lane = gpu::threadIndex() % 32, warp = gpu::threadIndex() / 32;
  for (int step = 1; step < 32; step *= 2) {
    const T before = gpu::shuffle(value, lane >= step ? lane - step : lane);
    if (lane >= step) value = before + value;
  }
  if (gpu::blockSize() == 32) return value;
  if (lane == 31) ofWarp[warp] = value;
  gpu::syncThreads();
  T before{};
  for (int w = 0; w < warp; ++w) before = before + static_cast<T>(ofWarp[w]);
  gpu::syncThreads();  // before the array is written again
  return before + value;
}

}  // namespace stepscope::cuda
