// The part of the language of the kernels (kernels/cuda/body.h) that is about the threads of a block: the same for every
// body whose threads are fibres.
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/emulated/launch.h"
#include "kernels/half.h"

#define SS_GLOBAL
#define SS_DEVICE inline
#define SS_ANY inline

namespace stepscope::gpu {

using Half = Float16;
using BFloat = BFloat16;
using emulated::Memory;
using emulated::Ref;

// All lanes of a warp.
inline constexpr unsigned kFullWarp = 0xffffffffu;

// Four neighbours that are loaded and stored at once.
template <typename T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T x, y, z, w;
};

// An array that the threads of a block share; it holds nothing at first.
template <typename T>
class Shared {
 public:
  explicit Shared(const Memory* memory) : memory_(memory) {}
  Ref<T> operator[](std::int64_t i) const {
    if (i < 0 || i >= memory_->count) emulated::outOfBounds(*memory_, i, 1);
    return {*memory_, i};
  }

 private:
  const Memory* memory_;
};
#define SS_SHARED(T, name, count)           \
  static constexpr char ssKeyOf_##name = 0; \
  const ::stepscope::gpu::Shared<T> name(   \
      ::stepscope::emulated::runningLaunch->sharedArray(&ssKeyOf_##name, count, sizeof(T)))

// Where the thread is: in its block, and the block in the grid; and how large they are.
inline int threadIndex() { return emulated::runningLaunch->lane->thread; }
inline int blockSize() { return emulated::runningLaunch->threads(); }
inline std::int64_t blockIndex() { return emulated::runningLaunch->block; }
inline std::int64_t gridSize() { return emulated::runningLaunch->blocks(); }

// Barriers: all threads of the block, or the lanes of the mask. With a vote: whether any thread's is true.
inline void syncThreads(int line = __builtin_LINE()) { emulated::runningLaunch->barrier(line); }
inline bool syncThreadsOr(bool vote, int line = __builtin_LINE()) { return emulated::runningLaunch->barrierOr(vote, line); }
inline void syncWarp(unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  emulated::runningLaunch->inWarp(emulated::Launch::kSync, mask, 0, 0, line);
}
// The value of another lane of the mask.
template <typename T>
T shuffle(T value, int source, unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  word = emulated::runningLaunch->inWarp(emulated::Launch::kShuffle, mask, word, source, line);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}
// The value of the lane whose number differs by the bits of `lanes`.
template <typename T>
T shuffleXor(T value, int lanes, unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  return shuffle(value, (threadIndex() % 32) ^ lanes, mask, line);
}
// Bit l: the vote of lane l, of the mask.
inline unsigned ballot(bool vote, unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  return static_cast<unsigned>(emulated::runningLaunch->inWarp(emulated::Launch::kBallot, mask, vote ? 1 : 0, 0, line));
}
// The number of the lowest bit that is set.
inline int firstBit(unsigned word) { return __builtin_ffs(static_cast<int>(word)) - 1; }

}  // namespace stepscope::gpu
