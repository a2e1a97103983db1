// The loops that the elementwise reference kernels share. A kernel gives a function of one element; floats of every width
// are handed to it as double and stored rounded, integers as they are. Operands broadcast as in ONNX.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/kernel.h"
#include "kernels/reference/numbers.h"

namespace stepscope::reference {

// What a kernel calculates with: double for floats, the type itself otherwise.
template <typename T>
using Wide = std::conditional_t<kIsFloat<T>, double, T>;

// A stored element as what is calculated with.
template <typename T>
Wide<T> widen(const T& value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<Wide<T>>(value);
}

// The result as it is stored, rounded once.
template <typename T, typename V>
T narrow(const V& value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Integer arithmetic that wraps.
template <typename T>
std::uint64_t bitsOf(T value) {
  return static_cast<std::uint64_t>(value);
}

// Offset of the operand's element that belongs to output element i. Neighbouring axes that broadcast alike are merged.
class BroadcastIndex {
 public:
  // `in` has been checked to broadcast to `out`.
  BroadcastIndex(const Dims& out, const Dims& in);
  std::int64_t operator()(std::int64_t i) const {
    if (same_) return i;
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank_; ++axis) {  // innermost first
      if (strides_[axis] != 0) offset += (i % extents_[axis]) * strides_[axis];
      i /= extents_[axis];
    }
    return offset;
  }
  static constexpr std::size_t kMaxRank = 32;

 private:
  bool same_ = false;
  std::size_t rank_ = 0;
  std::array<std::int64_t, kMaxRank> extents_{}, strides_{};
};

// --- checks; a kernel never trusts that operands agree
Status checkBroadcasts(const KernelSpec& spec, const KernelCall& call, std::size_t input, std::size_t output = 0);
Status checkSameElements(const KernelSpec& spec, const KernelCall& call, std::size_t input, std::size_t output = 0);
Status checkType(const KernelSpec& spec, const KernelCall& call, std::size_t input, DType dtype);
Status checkOutputType(const KernelSpec& spec, const KernelCall& call, std::size_t output, DType dtype);
tl::unexpected<Error> wrongType(const KernelSpec& spec, DType dtype);

// --- loops
// y[i] = f(x[i]) for floats.
template <typename F>
Status mapFloat(const KernelSpec& spec, const KernelCall& call, F f) {
  const TensorView& x = call.inputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, x.dtype));
  const bool done = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto in = x.as<const T>();
    const auto out = call.outputs[0].as<T>();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = narrow<T>(f(widen(in[i])));
  });
  if (!done) return wrongType(spec, x.dtype);
  return {};
}

// y[i] = f(x[i]) for floats and integers; f is a template over Wide<T>.
template <typename F>
Status mapNumeric(const KernelSpec& spec, const KernelCall& call, F f) {
  const TensorView& x = call.inputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, x.dtype));
  const bool done = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto in = x.as<const T>();
    const auto out = call.outputs[0].as<T>();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = narrow<T>(f(widen(in[i])));
  });
  if (!done) return wrongType(spec, x.dtype);
  return {};
}

// y = f(a, b), elements of type A and Y; the caller has dispatched. Reads element i of both before it writes i.
template <typename A, typename Y, typename F>
void broadcastLoop(const TensorView& a, const TensorView& b, const TensorView& y, F f) {
  const BroadcastIndex left(y.dims, a.dims), right(y.dims, b.dims);
  const A* x = static_cast<const A*>(a.data);
  const A* z = static_cast<const A*>(b.data);
  Y* out = static_cast<Y*>(y.data);
  const std::int64_t count = y.elements();
  for (std::int64_t i = 0; i < count; ++i) out[i] = narrow<Y>(f(widen(x[left(i)]), widen(z[right(i)])));
}

// One element type for all inputs and output 0, and every input broadcasts to it.
Status checkVariadic(const KernelSpec& spec, const KernelCall& call);

}  // namespace stepscope::reference
