// The language of the kernels (body.h) for nvcc. Nothing is checked here: what the emulator finds must have been mended.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <functional>
#include <type_traits>

#include "kernels/cuda/complained.h"
#include "kernels/kernel.h"

#define SS_GLOBAL __global__
#define SS_DEVICE __device__ __forceinline__
#define SS_ANY __host__ __device__ __forceinline__

namespace stepscope::gpu {

using Half = __half;
using BFloat = __nv_bfloat16;
enum class Access { kRead, kWrite, kPart, kReadWrite };  // for the emulator

// All lanes of a warp.
inline constexpr unsigned kFullWarp = 0xffffffffu;

// Four neighbours that are loaded and stored at once.
template <typename T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T x, y, z, w;
};

// Elements of an operand; null where it is absent.
template <typename T>
class Global {
 public:
  Global() = default;
  explicit Global(void* data) : data_(static_cast<T*>(data)) {}
  SS_DEVICE bool present() const { return data_ != nullptr; }
  SS_DEVICE T& operator[](std::int64_t i) const { return data_[i]; }
  SS_DEVICE Four<std::remove_const_t<T>> four(std::int64_t i) const {
    return *reinterpret_cast<const Four<std::remove_const_t<T>>*>(data_ + i);
  }
  SS_DEVICE void setFour(std::int64_t i, const Four<T>& v) const { *reinterpret_cast<Four<T>*>(data_ + i) = v; }
  SS_DEVICE T atomicAdd(std::int64_t i, T value) const { return ::atomicAdd(data_ + i, value); }

 private:
  T* data_ = nullptr;
};

// Eight elements from `i` on, a multiple of 8: 16 bytes at once where an element has 2 bytes, else two times four.
template <typename T>
SS_DEVICE void loadEight(Global<const T> x, std::int64_t i, T (&to)[8]) {
  if constexpr (sizeof(T) == 2) {
    const uint4 word = *reinterpret_cast<const uint4*>(&x[i]);
    memcpy(to, &word, sizeof(word));
  } else {
    for (int h = 0; h < 8; h += 4) {
      const Four<T> four = x.four(i + h);
      to[h] = four.x, to[h + 1] = four.y, to[h + 2] = four.z, to[h + 3] = four.w;
    }
  }
}
template <typename T>
SS_DEVICE void storeEight(Global<T> y, std::int64_t i, const T (&from)[8]) {
  if constexpr (sizeof(T) == 2) {
    uint4 word;
    memcpy(&word, from, sizeof(word));
    *reinterpret_cast<uint4*>(&y[i]) = word;
  } else {
    for (int h = 0; h < 8; h += 4) y.setFour(i + h, {from[h], from[h + 1], from[h + 2], from[h + 3]});
  }
}

#define SS_SHARED(T, name, count) __shared__ T name[count]

// Where the thread is: in its block, and the block in the grid; and how large they are.
SS_DEVICE int threadIndex() { return static_cast<int>(threadIdx.x); }
SS_DEVICE int blockSize() { return static_cast<int>(blockDim.x); }
SS_DEVICE std::int64_t blockIndex() { return blockIdx.x; }
SS_DEVICE std::int64_t gridSize() { return gridDim.x; }

// Barriers: all threads of the block, or the lanes of the mask. With a vote: whether any thread's is true.
SS_DEVICE void syncThreads() { __syncthreads(); }
SS_DEVICE bool syncThreadsOr(bool vote) { return __syncthreads_or(vote) != 0; }
SS_DEVICE void syncWarp(unsigned mask = kFullWarp) { __syncwarp(mask); }
// The value of another lane of the mask.
template <typename T>
SS_DEVICE T shuffle(T value, int source, unsigned mask = kFullWarp) {
  return __shfl_sync(mask, value, source);
}
// The value of the lane whose number differs by the bits of `lanes`.
template <typename T>
SS_DEVICE T shuffleXor(T value, int lanes, unsigned mask = kFullWarp) {
  return __shfl_xor_sync(mask, value, lanes);
}
// Bit l: the vote of lane l, of the mask.
SS_DEVICE unsigned ballot(bool vote, unsigned mask = kFullWarp) { return __ballot_sync(mask, vote); }
// The number of the lowest bit that is set.
SS_DEVICE int firstBit(unsigned word) { return __ffs(static_cast<int>(word)) - 1; }

// Where a kernel says that an operand holds a value it must not hold. The one with the smallest position is told.
class Complaint {
 public:
  Complaint() = default;
  // Lanes of a warp take the lock in turn: a lane that waits for another one of its warp may keep that one from going on.
  SS_DEVICE void raise(std::int64_t position, std::int64_t value) const {
    const auto own = static_cast<unsigned long long>(position);
    if (read(place_->position) <= own) return;
    for (unsigned lanes = __activemask(); lanes != 0; lanes &= lanes - 1)
      if (threadIdx.x % 32 == static_cast<unsigned>(firstBit(lanes))) write(own, value);
  }

 private:
  SS_DEVICE static unsigned long long read(const volatile unsigned long long& word) { return word; }
  // The host may look while the kernel runs: what it sees of the position, it sees of the value.
  SS_DEVICE void write(unsigned long long position, std::int64_t value) const {
    volatile Complained* const place = place_;
    while (atomicCAS(&place_->lock, 0u, 1u) != 0u) {
    }
    __threadfence_system();
    if (position < place->position) {
      place->value = value;
      __threadfence_system();
      place->position = position;
    }
    __threadfence_system();
    atomicExch(&place_->lock, 0u);
  }

  Complained* place_ = nullptr;
};

// --- The host side of the kernels runs as the host compiler compiled it (kernels/emulated/body.h). What follows lets nvcc
// read it, so that it compiles every kernel that is launched; it generates no code of it.

// A kernel, and what gives it.
template <typename... P>
struct KernelFunction {
  void (*entry)(P...) = nullptr;
};
// Of a pointer to it.
template <typename... P>
constexpr KernelFunction<P...> functionOf(void (*entry)(P...)) {
  return {entry};
}
// By its name: gpu::function<softmaxRows<true>>.
template <auto kKernel>
inline constexpr auto function = functionOf(kKernel);

// The launches of a call.
class Launcher {
 public:
  explicit Launcher(const KernelCall& call) : call_(call) {}
  const KernelCall& call() const { return call_; }
  template <typename T>
  Global<const T> in(std::size_t) {
    return {};
  }
  template <typename T>
  Global<T> out(std::size_t, Access = Access::kWrite) {
    return {};
  }
  template <typename T>
  Global<const T> readOut(std::size_t) {
    return {};
  }
  template <typename T>
  Global<T> room(std::size_t, std::int64_t, Access = Access::kWrite) {
    return {};
  }
  template <typename T>
  Global<const T> readRoom(std::size_t, std::int64_t) {
    return {};
  }
  Global<const std::uint64_t> recordedKey() { return {}; }
  Complaint complaint(const std::function<Error(std::int64_t position, std::int64_t value)>&) { return {}; }
  template <typename... P, typename... A>
  Status run(const char*, KernelFunction<P...>, std::int64_t, int, A...) {
    return {};
  }

 private:
  const KernelCall& call_;
};

}  // namespace stepscope::gpu
