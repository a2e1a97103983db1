// Sums and largest values over the threads of a block, in an order that depends on the number of threads alone.
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

}  // namespace stepscope::cuda
