// Cast between float32, float64, float16, bfloat16, int32, int64 and bool, in the directions that do not saturate.
#include "kernels/cuda/element.h"
#include "kernels/cuda/support.h"

namespace stepscope::cuda {
inline namespace cast_cu {

template <typename To, typename From>
SS_DEVICE To converted(From x) {
  if constexpr (std::is_same_v<To, Bool>)
    return {static_cast<std::uint8_t>(x != From{} ? 1 : 0)};
  else if constexpr (std::is_same_v<From, Bool>)
    return static_cast<To>(x.value != 0 ? 1 : 0);
  else
    return static_cast<To>(x);
}

// Elements of a thread: with eight, 16-bit ones move 16 bytes at once.
constexpr int kEach = 8;

// x[count] → y[count]
template <DType kFrom, DType kTo>
SS_GLOBAL void cast(Global<const typename Element<kFrom>::Type> x, Global<typename Element<kTo>::Type> y,
                    std::int64_t count) {
  using From = typename Element<kFrom>::Type;
  using To = typename Element<kTo>::Type;
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * kEach;
  if (first + kEach <= count) {
    From from[kEach];
    To to[kEach];
    gpu::loadEight(x, first, from);
    for (int e = 0; e < kEach; ++e) to[e] = converted<To, From>(from[e]);
    gpu::storeEight(y, first, to);
    return;
  }
  for (std::int64_t i = first; i < count; ++i) {
    const From value = x[i];
    y[i] = converted<To, From>(value);
  }
}

struct Entry {
  DType from, to;
  Status (*run)(Launcher& gpu, std::int64_t count);
};
template <DType kFrom, DType kTo>
constexpr Entry entry() {
  return {kFrom, kTo, [](Launcher& gpu, std::int64_t count) {
            return gpu.run("cast", gpu::function<cast<kFrom, kTo>>, blocksFor(count, kThreads * kEach), kThreads,
                           gpu.in<typename Element<kFrom>::Type>(0), gpu.out<typename Element<kTo>::Type>(0), count);
          }};
}

const Entry kEntries[] = {
    entry<DType::kBool, DType::kF32>(), entry<DType::kBool, DType::kI64>(), entry<DType::kBool, DType::kI32>(),
    entry<DType::kF64, DType::kF32>(),  entry<DType::kF32, DType::kBF16>(), entry<DType::kF32, DType::kF16>(),
    entry<DType::kF32, DType::kBool>(), entry<DType::kF32, DType::kF64>(),  entry<DType::kBF16, DType::kF32>(),
    entry<DType::kF16, DType::kF32>(),  entry<DType::kI32, DType::kF32>(),  entry<DType::kI32, DType::kBool>(),
    entry<DType::kI32, DType::kI64>(),  entry<DType::kI64, DType::kBool>(), entry<DType::kI64, DType::kF32>(),
    entry<DType::kI64, DType::kI32>(),
};

}  // namespace cast_cu

Result<std::unique_ptr<Kernel>> makeCast(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.size() != 1) return notTaken(spec, "no operand");
  for (const Entry& entry : kEntries) {
    if (!takesInput(spec, 0, entry.from) || !takesOutput(spec, 0, entry.to)) continue;
    const std::int64_t count = elementCount(spec.inputs[0].dims);
    if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "a result of another size");
    return makeLaunched("cast", [=, run = entry.run](Launcher& gpu) { return run(gpu, count); });
  }
  return notTaken(spec, "types whose conversion saturates");
}

}  // namespace stepscope::cuda
