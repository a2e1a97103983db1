// The language of the kernels (kernels/cuda/body.h), for the host compiler. Contracts are in that header's twin for nvcc;
// what differs is that every access, barrier and shuffle is checked.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/device_graph.h"
#include "kernels/emulated/direct.h"
#include "kernels/emulated/launch.h"
#include "kernels/emulated/threads.h"
#include "kernels/kernel.h"

namespace stepscope::gpu {

using emulated::Access;

// Elements of an operand. Empty where the operand is absent. One word, as in the body for nvcc: where launches are direct it
// is the address itself, and no code of the host follows it.
template <typename T>
class Global {
 public:
  Global() = default;
  explicit Global(const Memory* memory) : memory_(memory) {}
  bool present() const { return memory_ != nullptr; }
  Ref<T> operator[](std::int64_t i) const { return {checked(i, 1), i}; }

  Four<std::remove_const_t<T>> four(std::int64_t i) const {
    const Memory& m = aligned(i, 4);
    return {Ref<T>(m, i), Ref<T>(m, i + 1), Ref<T>(m, i + 2), Ref<T>(m, i + 3)};
  }
  void setFour(std::int64_t i, const Four<T>& v) const {
    const Memory& m = aligned(i, 4);
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
    if (m.traffic) {
      m.traffic->read += static_cast<std::int64_t>(sizeof(T));
      m.traffic->written += static_cast<std::int64_t>(sizeof(T));
    }
    T& place = reinterpret_cast<T*>(m.open)[i];
    return std::exchange(place, place + value);
  }

  // Of `count` elements that are moved at once: they are there, and their address is a multiple of their bytes (16 at most).
  const Memory& aligned(std::int64_t i, std::int64_t count) const {
    const Memory& m = checked(i, count);
    const std::size_t bytes = std::min<std::size_t>(16, static_cast<std::size_t>(count) * sizeof(T));
    if ((reinterpret_cast<std::uintptr_t>(m.address) + static_cast<std::size_t>(i) * sizeof(T)) % bytes != 0)
      emulated::misaligned(m, i, bytes);
    return m;
  }

 private:
  const Memory& checked(std::int64_t i, std::int64_t count) const {
    if (memory_ == nullptr) emulated::absentOperand();
    if (i < 0 || i + count > memory_->count) emulated::outOfBounds(*memory_, i, count);
    return *memory_;
  }
  const Memory* memory_ = nullptr;
};

// Eight elements from `i` on, a multiple of 8; two times four here.
template <typename T>
void loadEight(const Global<const T>& x, std::int64_t i, T (&to)[8]) {
  x.aligned(i, 8);
  for (int h = 0; h < 8; h += 4) {
    const Four<T> four = x.four(i + h);
    to[h] = four.x, to[h + 1] = four.y, to[h + 2] = four.z, to[h + 3] = four.w;
  }
}
template <typename T>
void storeEight(const Global<T>& y, std::int64_t i, const T (&from)[8]) {
  y.aligned(i, 8);
  for (int h = 0; h < 8; h += 4) y.setFour(i + h, {from[h], from[h + 1], from[h + 2], from[h + 3]});
}

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
  explicit Launcher(const KernelCall& call) : call_(call), direct_(directLaunches) {}
  const KernelCall& call() const { return call_; }

  // Operands of the next launch, as elements of T.
  template <typename T>
  Global<const T> in(std::size_t i) {
    if (!call_.inputPresent(i)) return {};
    return Global<const T>(add("input", i, call_.inputs[i].data, count<T>(call_.inputs[i]), sizeof(T), Access::kRead));
  }
  template <typename T>
  Global<T> out(std::size_t i, Access access = Access::kWrite) {
    if (!call_.outputPresent(i)) return {};
    return Global<T>(add("output", i, call_.outputs[i].data, count<T>(call_.outputs[i]), sizeof(T), access));
  }
  template <typename T>
  Global<const T> readOut(std::size_t i) {
    if (!call_.outputPresent(i)) return {};
    return Global<const T>(add("output", i, call_.outputs[i].data, count<T>(call_.outputs[i]), sizeof(T), Access::kRead));
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
  // Seed and step while a graph is recorded; else empty.
  Global<const std::uint64_t> recordedKey() {
    if (!gpu::recordedKey) return {};
    auto* const place = const_cast<std::byte*>(gpu::recordedKey);
    return Global<const std::uint64_t>(add("seed and step", 0, place, 2, sizeof(std::uint64_t), Access::kRead));
  }
  Complaint complaint(emulated::ErrorOf error) {
    if (direct_) {
      auto place = direct_->complaint(std::move(error));
      if (!place) wrong_ = tl::make_unexpected(std::move(place).error());
      return Complaint(place ? static_cast<emulated::Launch*>(*place) : nullptr);
    }
    pending().setComplaint(std::move(error));
    return Complaint(&pending());
  }

  // Puts function(arguments…) on the stream of the call, for `blocks` blocks of `threads` threads.
  template <typename... P, typename... A>
  Status run(const char* name, KernelFunction<P...> function, std::int64_t blocks, int threads, A... arguments) {
    if (direct_) return runDirect<P...>(name, function, blocks, threads, arguments...);
    emulated::Launch& launch = pending();
    launch.rename(name);
    launch.prepare(blocks, threads, [entry = function.entry, arguments...] { entry(arguments...); });
    if (Status status = std::exchange(wrong_, Status()); !status)
      return fail(status.error().code, "kernel '" + launch.kernel() + "': " + status.error().message);
    return submitLaunch(std::move(pending_), call_.stream);
  }

 private:
  emulated::Launch& pending() {
    if (!pending_) pending_ = std::make_unique<emulated::Launch>();
    return *pending_;
  }
  // Elements of T that the operand holds, whose own may be smaller.
  template <typename T>
  static std::int64_t count(const TensorView& view) {
    return static_cast<std::int64_t>(view.bytes() / sizeof(T));
  }
  // The arguments have the types of the parameters here, so that their bytes are those that the GPU reads.
  template <typename... P>
  Status runDirect(const char* name, const KernelFunction<P...>& function, std::int64_t blocks, int threads,
                   P... arguments) {
    SS_TRY(std::exchange(wrong_, Status()));
    void* parameters[] = {&arguments...};
    return direct_->launch({name, *function.tag, blocks, threads, parameters, call_.stream});
  }
  const Memory* add(const char* what, std::size_t i, void* address, std::int64_t count, std::size_t size, Access access);
  const Memory* addRoom(std::size_t offset, std::int64_t count, std::size_t size, Access access);
  static Status submitLaunch(std::unique_ptr<emulated::Launch> launch, StreamId stream);

  const KernelCall& call_;
  DirectLaunches* const direct_;
  std::unique_ptr<emulated::Launch> pending_;
  Status wrong_;  // an operand of the pending launch that the call has not
};

}  // namespace stepscope::gpu
