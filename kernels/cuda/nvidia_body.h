// The language of the kernels (body.h) for nvcc. Nothing is checked here: what the emulator finds must have been mended.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <type_traits>

#include "kernels/kernel.h"

#define SS_GLOBAL __global__
#define SS_DEVICE __device__ __forceinline__

namespace stepscope::gpu {

using Half = __half;
using BFloat = __nv_bfloat16;
enum class Access { kRead, kWrite, kPart, kReadWrite };  // for the emulator

// All lanes of a warp.
inline constexpr unsigned kFullWarp = 0xffffffffu;

// Four neighbours that are loaded and stored at once.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
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

// Memory that host and device reach: the smallest position at which a kernel complained, and the value there.
struct Complained {
  unsigned long long position = ~0ull;
  long long value = 0;
};

// Where a kernel says that an operand holds a value it must not hold. The one with the smallest position is told.
class Complaint {
 public:
  Complaint() = default;
  explicit Complaint(Complained* place) : place_(place) {}
  SS_DEVICE void raise(std::int64_t position, std::int64_t value) const {
    const auto own = static_cast<unsigned long long>(position);
    if (atomicMin(&place_->position, own) > own) place_->value = value;
  }

 private:
  Complained* place_ = nullptr;
};

// What the device sets before it runs a kernel in this thread: the stream of the call, and a place for complaints with the
// function that makes an error of one.
struct LaunchTarget {
  cudaStream_t stream = nullptr;
  Complained* complained = nullptr;
  std::function<Error(std::int64_t position, std::int64_t value)> errorOf;
};
inline thread_local LaunchTarget launchTarget;

// What the host side of a kernel puts its launches together with. One lives as long as Kernel::run.
class Launcher {
 public:
  explicit Launcher(const KernelCall& call) : call_(call) {}
  const KernelCall& call() const { return call_; }

  template <typename T>
  Global<const T> in(std::size_t i) {
    return call_.inputPresent(i) ? Global<const T>(call_.inputs[i].data) : Global<const T>();
  }
  template <typename T>
  Global<T> out(std::size_t i, Access = Access::kWrite) {
    return call_.outputPresent(i) ? Global<T>(call_.outputs[i].data) : Global<T>();
  }
  template <typename T>
  Global<const T> readOut(std::size_t i) {
    return Global<const T>(call_.outputs[i].data);
  }
  template <typename T>
  Global<T> room(std::size_t offset, std::int64_t, Access = Access::kWrite) {
    return Global<T>(call_.workspace.data() + offset);
  }
  template <typename T>
  Global<const T> readRoom(std::size_t offset, std::int64_t) {
    return Global<const T>(call_.workspace.data() + offset);
  }
  Complaint complaint(std::function<Error(std::int64_t position, std::int64_t value)> error) {
    launchTarget.errorOf = std::move(error);
    return Complaint(launchTarget.complained);
  }

  template <typename... P, typename... A>
  Status run(const char* name, void (*kernel)(P...), std::int64_t blocks, int threads, A... arguments) {
    kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, launchTarget.stream>>>(arguments...);
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return {};
    return fail(ErrorCode::kInternal, std::string("kernel '") + name + "': " + cudaGetErrorString(error));
  }

 private:
  const KernelCall& call_;
};

}  // namespace stepscope::gpu
