// The language of the kernels (kernels/cuda/body.h) for the fake GPU: threads are fibres, operands are plain addresses, as
// on a real one, and nothing is checked. Every kernel that is launched anywhere is entered in a table, from which the fake
// driver runs it with parameters as a driver gets them: bytes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "kernels/cuda/complained.h"
#include "kernels/emulated/threads.h"
#include "kernels/kernel.h"

namespace stepscope::gpu {

using emulated::Access;

/// By the name of the kernel's tag: what reads its parameters and gives a call of it.
using FakeKernel = std::function<void()> (*)(void** parameters);
std::map<std::string, FakeKernel>& fakeKernels();

template <typename T>
class Global {
 public:
  bool present() const { return data_ != nullptr; }
  T& operator[](std::int64_t i) const { return data_[i]; }
  Four<std::remove_const_t<T>> four(std::int64_t i) const { return {data_[i], data_[i + 1], data_[i + 2], data_[i + 3]}; }
  void setFour(std::int64_t i, const Four<T>& v) const {
    data_[i] = v.x, data_[i + 1] = v.y, data_[i + 2] = v.z, data_[i + 3] = v.w;
  }
  T atomicAdd(std::int64_t i, T value) const { return std::exchange(data_[i], data_[i] + value); }

 private:
  T* data_ = nullptr;
};

template <typename T>
void loadEight(const Global<const T>& x, std::int64_t i, T (&to)[8]) {
  for (int e = 0; e < 8; ++e) to[e] = x[i + e];
}
template <typename T>
void storeEight(const Global<T>& y, std::int64_t i, const T (&from)[8]) {
  for (int e = 0; e < 8; ++e) y[i + e] = from[e];
}

class Complaint {
 public:
  void raise(std::int64_t position, std::int64_t value) const {
    const auto own = static_cast<unsigned long long>(position);
    if (own >= place_->position) return;
    place_->position = own;
    place_->value = value;
  }

 private:
  Complained* place_ = nullptr;
};

template <auto kKernel>
struct KernelTag {};

template <typename... P>
struct KernelFunction {
  void (*entry)(P...) = nullptr;
  const bool* known = nullptr;
};

/// Reads the parameters, each from its own address.
template <auto kKernel, typename... P, std::size_t... kIndices>
std::function<void()> bindParameters(void** parameters, void (*)(P...), std::index_sequence<kIndices...>) {
  return [values = std::tuple<P...>(*static_cast<P*>(parameters[kIndices])...)] { std::apply(kKernel, values); };
}
template <auto kKernel, typename... P>
std::function<void()> bindParameters(void** parameters, void (*kernel)(P...)) {
  return bindParameters<kKernel>(parameters, kernel, std::index_sequence_for<P...>());
}
template <auto kKernel>
struct Known {
  static const bool yes;
};
template <auto kKernel>
const bool Known<kKernel>::yes = [] {
  fakeKernels()[typeid(KernelTag<kKernel>).name()] = [](void** parameters) {
    return bindParameters<kKernel>(parameters, kKernel);
  };
  return true;
}();
template <typename... P>
constexpr KernelFunction<P...> functionOf(void (*entry)(P...), const bool* known) {
  return {entry, known};
}
template <auto kKernel>
inline constexpr auto function = functionOf(kKernel, &Known<kKernel>::yes);

/// The host side of the kernels does not run here; it names the kernels.
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
  Complaint complaint(const std::function<Error(std::int64_t, std::int64_t)>&) { return {}; }
  template <typename... P, typename... A>
  Status run(const char*, KernelFunction<P...>, std::int64_t, int, A...) {
    return {};
  }

 private:
  const KernelCall& call_;
};

}  // namespace stepscope::gpu
