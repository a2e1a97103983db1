// Operands of the optimizer's updates that may be of a low type: the gradient, and a copy of the parameter
// (kernels/reference/elementwise/optimizer.h). Elements are read and written kFew at a time where all are there.
#pragma once

#include <algorithm>

#include "kernels/cuda/element.h"
#include "kernels/cuda/row_parts.h"

namespace stepscope::cuda {

inline constexpr int kFew = kQuad;

// One of both is there.
template <DType kLow>
struct Gradient {
  Global<const float> wide;
  Global<const typename Element<kLow>::Type> low;
};
// Absent where nobody keeps one.
template <DType kLow>
struct Copy {
  Global<typename Element<kLow>::Type> low;
};

// As load, widened.
template <DType kLow>
SS_DEVICE void loadGradient(const Gradient<kLow>& g, std::int64_t first, int n, float (&to)[kFew]) {
  if (g.wide.present()) return load(g.wide, first, n, to);
  typename Element<kLow>::Type low[kFew] = {};
  load(g.low, first, n, low);
  for (int e = 0; e < n; ++e) to[e] = static_cast<float>(low[e]);
}
// One element, widened.
template <DType kLow>
SS_DEVICE float gradientAt(const Gradient<kLow>& g, std::int64_t i) {
  if (g.wide.present()) return g.wide[i];
  const typename Element<kLow>::Type low = g.low[i];
  return static_cast<float>(low);
}
// As store, rounded; nothing where there is no copy.
template <DType kLow>
SS_DEVICE void storeCopy(const Copy<kLow>& copy, std::int64_t first, int n, const float (&from)[kFew]) {
  if (!copy.low.present()) return;
  typename Element<kLow>::Type low[kFew] = {};
  for (int e = 0; e < n; ++e) low[e] = static_cast<typename Element<kLow>::Type>(from[e]);
  store(copy.low, first, n, low);
}

// The first low type among the operands; float32: there is none.
inline DType lowTypeOf(const KernelSpec& spec) {
  const auto isLowOne = [](const OperandSpec& operand) { return isLow(operand.dtype); };
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    if (const auto it = std::ranges::find_if(*operands, isLowOne); it != operands->end()) return it->dtype;
  return DType::kF32;
}
inline bool takesGradient(const KernelSpec& spec, std::size_t i, std::int64_t count, DType low) {
  return (takesInput(spec, i) || takesInput(spec, i, low)) && elementCount(spec.inputs[i].dims) == count;
}
template <DType kLow>
Gradient<kLow> gradientOf(Launcher& gpu, std::size_t i) {
  if (gpu.call().inputs[i].dtype == kLow) return {{}, gpu.in<typename Element<kLow>::Type>(i)};
  return {gpu.in<float>(i), {}};
}
template <DType kLow>
Copy<kLow> copyOf(Launcher& gpu, bool copies, std::size_t o) {
  if (!copies) return {};
  return {gpu.out<typename Element<kLow>::Type>(o)};
}

}  // namespace stepscope::cuda
