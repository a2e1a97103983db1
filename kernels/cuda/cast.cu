// Cast between float32, float64, float16, bfloat16, int32, int64 and bool, in the directions that do not saturate.
#include "kernels/cuda/support.h"

namespace stepscope::cuda {
namespace {

using gpu::BFloat;
using gpu::Half;

constexpr int kEach = 4;

struct Bool {
  std::uint8_t value;
};

template <typename To, typename From>
SS_DEVICE To converted(From x) {
  if constexpr (std::is_same_v<To, Bool>)
    return {static_cast<std::uint8_t>(x != From{} ? 1 : 0)};
  else if constexpr (std::is_same_v<From, Bool>)
    return static_cast<To>(x.value != 0 ? 1 : 0);
  else
    return static_cast<To>(x);
}

// x[count] → y[count]
template <typename From, typename To>
SS_GLOBAL void cast(Global<const From> x, Global<To> y, std::int64_t count) {
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * kEach;
  if (first + kEach <= count) {
    const gpu::Four<From> four = x.four(first);
    y.setFour(first, {converted<To, From>(four.x), converted<To, From>(four.y), converted<To, From>(four.z),
                      converted<To, From>(four.w)});
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
template <typename From, typename To>
constexpr Entry entry(DType from, DType to) {
  return {from, to, [](Launcher& gpu, std::int64_t count) {
            return gpu.run("cast", cast<From, To>, blocksFor(count, kThreads * kEach), kThreads, gpu.in<From>(0),
                           gpu.out<To>(0), count);
          }};
}

const Entry kEntries[] = {
    entry<Bool, float>(DType::kBool, DType::kF32),
    entry<Bool, std::int64_t>(DType::kBool, DType::kI64),
    entry<double, float>(DType::kF64, DType::kF32),
    entry<float, BFloat>(DType::kF32, DType::kBF16),
    entry<float, Half>(DType::kF32, DType::kF16),
    entry<float, Bool>(DType::kF32, DType::kBool),
    entry<float, double>(DType::kF32, DType::kF64),
    entry<BFloat, float>(DType::kBF16, DType::kF32),
    entry<Half, float>(DType::kF16, DType::kF32),
    entry<std::int32_t, float>(DType::kI32, DType::kF32),
    entry<std::int32_t, std::int64_t>(DType::kI32, DType::kI64),
    entry<std::int64_t, Bool>(DType::kI64, DType::kBool),
    entry<std::int64_t, float>(DType::kI64, DType::kF32),
    entry<std::int64_t, std::int32_t>(DType::kI64, DType::kI32),
};

}  // namespace

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
