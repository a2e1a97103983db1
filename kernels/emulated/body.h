// The language of the kernels (kernels/cuda/body.h), for the host compiler. Contracts are in that header's twin for nvcc;
// what differs is that every access, barrier and shuffle is checked.
#pragma once

#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/emulated/launch.h"
#include "kernels/half.h"
#include "kernels/kernel.h"

#define SS_GLOBAL
#define SS_DEVICE inline

namespace stepscope::gpu {

using emulated::Access;
using emulated::Memory;
using emulated::Ref;
using Half = Float16;
using BFloat = BFloat16;

// All lanes of a warp.
inline constexpr unsigned kFullWarp = 0xffffffffu;

// Four neighbours that are loaded and stored at once.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T x, y, z, w;
};

// Elements of an operand. Empty where the operand is absent.
template <typename T>
class Global {
 public:
  Global() = default;
  explicit Global(const Memory* memory) : memory_(memory) {}
  bool present() const { return memory_ != nullptr; }
  Ref<T> operator[](std::int64_t i) const { return {checked(i, 1), i}; }

  Four<std::remove_const_t<T>> four(std::int64_t i) const {
    const Memory& m = aligned(i);
    return {Ref<T>(m, i), Ref<T>(m, i + 1), Ref<T>(m, i + 2), Ref<T>(m, i + 3)};
  }
  void setFour(std::int64_t i, const Four<T>& v) const {
    const Memory& m = aligned(i);
    Ref<T>(m, i) = v.x;
    Ref<T>(m, i + 1) = v.y;
    Ref<T>(m, i + 2) = v.z;
    Ref<T>(m, i + 3) = v.w;
  }
  // Returns what was there.
  T atomicAdd(std::int64_t i, T value) const {
    const Memory& m = checked(i, 1);
    if (m.access == Access::kRead) emulated::readOnly(m, i);
    if (m.cells) emulated::noteWrite(m, i, true);
    T& place = reinterpret_cast<T*>(m.open)[i];
    return std::exchange(place, place + value);
  }

 private:
  const Memory& checked(std::int64_t i, std::int64_t count) const {
    if (memory_ == nullptr) emulated::absentOperand();
    if (i < 0 || i + count > memory_->count) emulated::outOfBounds(*memory_, i, count);
    return *memory_;
  }
  const Memory& aligned(std::int64_t i) const {
    const Memory& m = checked(i, 4);
    constexpr std::size_t kBytes = 4 * sizeof(T);
    if ((reinterpret_cast<std::uintptr_t>(m.address) + static_cast<std::size_t>(i) * sizeof(T)) % kBytes != 0)
      emulated::misaligned(m, i, kBytes);
    return m;
  }
  const Memory* memory_ = nullptr;
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

// Where a kernel says that an operand holds a value it must not hold. The one with the smallest position is told.
class Complaint {
 public:
  Complaint() = default;
  explicit Complaint(emulated::Launch* launch) : launch_(launch) {}
  void raise(std::int64_t position, std::int64_t value) const { launch_->complain(position, value); }

 private:
  emulated::Launch* launch_ = nullptr;
};

// What the host side of a kernel puts its launches together with. One lives as long as Kernel::run.
class Launcher {
 public:
  explicit Launcher(const KernelCall& call) : call_(call) {}
  const KernelCall& call() const { return call_; }

  // Operands of the next launch.
  template <typename T>
  Global<const T> in(std::size_t i) {
    if (!call_.inputPresent(i)) return {};
    return Global<const T>(add("input", i, call_.inputs[i].data, call_.inputs[i].elements(), sizeof(T), Access::kRead));
  }
  template <typename T>
  Global<T> out(std::size_t i, Access access = Access::kWrite) {
    if (!call_.outputPresent(i)) return {};
    return Global<T>(add("output", i, call_.outputs[i].data, call_.outputs[i].elements(), sizeof(T), access));
  }
  template <typename T>
  Global<const T> readOut(std::size_t i) {
    if (!call_.outputPresent(i)) return {};
    return Global<const T>(add("output", i, call_.outputs[i].data, call_.outputs[i].elements(), sizeof(T), Access::kRead));
  }
  // `count` elements of the workspace, from byte `offset` on.
  template <typename T>
  Global<T> room(std::size_t offset, std::int64_t count, Access access = Access::kWrite) {
    return Global<T>(addRoom(offset, count, sizeof(T), access));
  }
  template <typename T>
  Global<const T> readRoom(std::size_t offset, std::int64_t count) {
    return Global<const T>(addRoom(offset, count, sizeof(T), Access::kRead));
  }
  Complaint complaint(emulated::ErrorOf error) {
    pending().setComplaint(std::move(error));
    return Complaint(&pending());
  }

  // Puts kernel(arguments…) on the stream of the call, for `blocks` blocks of `threads` threads.
  template <typename... P, typename... A>
  Status run(const char* name, void (*kernel)(P...), std::int64_t blocks, int threads, A... arguments) {
    emulated::Launch& launch = pending();
    launch.rename(name);
    launch.prepare(blocks, threads, [kernel, arguments...] { kernel(arguments...); });
    SS_TRY(std::exchange(wrong_, Status()));
    return submitLaunch(std::move(pending_), call_.stream);
  }

 private:
  emulated::Launch& pending() {
    if (!pending_) pending_ = std::make_unique<emulated::Launch>();
    return *pending_;
  }
  const Memory* add(const char* what, std::size_t i, void* address, std::int64_t count, std::size_t size, Access access);
  const Memory* addRoom(std::size_t offset, std::int64_t count, std::size_t size, Access access);
  static Status submitLaunch(std::unique_ptr<emulated::Launch> launch, StreamId stream);

  const KernelCall& call_;
  std::unique_ptr<emulated::Launch> pending_;
  Status wrong_;  // an operand of the pending launch that the call has not
};

}  // namespace stepscope::gpu
