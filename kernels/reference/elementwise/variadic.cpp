// Reductions over the inputs of a node. Floats are gathered in double and stored once.
#include <cmath>
#include <vector>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

struct Largest {
  template <typename T>
  static T join(T a, T b) {
    return a != a || a > b ? a : b;  // NaN wins
  }
  static double finish(double value, std::size_t) { return value; }
};
struct Smallest {
  template <typename T>
  static T join(T a, T b) {
    return a != a || a < b ? a : b;
  }
  static double finish(double value, std::size_t) { return value; }
};
struct Total {
  template <typename T>
  static T join(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    return static_cast<T>(bitsOf(a) + bitsOf(b));
  }
  static double finish(double value, std::size_t) { return value; }
};
struct Average : Total {
  static double finish(double value, std::size_t count) { return value / static_cast<double>(count); }
};

template <typename F>
Status variadic(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkVariadic(spec, call));
  const TensorView& y = call.outputs[0];
  static thread_local std::vector<BroadcastIndex> offsets;  // keeps its memory from step to step
  offsets.clear();
  for (const TensorView& x : call.inputs) offsets.emplace_back(y.dims, x.dims);
  const bool done = dispatchNumeric(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    const BroadcastIndex* index = offsets.data();
    const auto element = [&](std::size_t input, std::int64_t i) {
      return widen(static_cast<const T*>(call.inputs[input].data)[index[input](i)]);
    };
    T* out = static_cast<T*>(y.data);
    const std::int64_t count = y.elements();
    for (std::int64_t i = 0; i < count; ++i) {
      auto value = element(0, i);
      for (std::size_t input = 1; input < offsets.size(); ++input) value = F::join(value, element(input, i));
      if constexpr (kIsFloat<T>)
        out[i] = narrow<T>(F::finish(value, offsets.size()));
      else
        out[i] = value;
    }
  });
  if (!done) return wrongType(spec, y.dtype);
  return {};
}

}  // namespace

std::span<const KernelEntry> variadicKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Max", reading<1, variadic<Largest>>},
      {"", "Mean", reading<1, variadic<Average>>},
      {"", "Min", reading<1, variadic<Smallest>>},
      {"", "Sum", reading<1, variadic<Total>>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
