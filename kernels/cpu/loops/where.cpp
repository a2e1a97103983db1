// Where: elements of 1, 4 and 8 bytes, all operands broadcast.
#include "kernels/cpu/loops/broadcast.h"

namespace stepscope::cpu {
namespace {

template <typename T>
SS_CLONES void whereLoop(const std::uint8_t* c, std::int64_t stepC, const T* a, std::int64_t stepA, const T* b,
                         std::int64_t stepB, T* y, std::int64_t count) {
  if (stepC == 0) {
    const T* from = *c != 0 ? a : b;
    if ((*c != 0 ? stepA : stepB) != 0) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) y[i] = from[i];
    } else {
      const T one = *from;
      for (std::int64_t i = 0; i < count; ++i) y[i] = one;
    }
  } else if (stepA != 0 && stepB != 0) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const T left = a[i], right = b[i];
      y[i] = c[i] != 0 ? left : right;
    }
  } else if (stepA != 0) {
    const T right = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const T left = a[i];
      y[i] = c[i] != 0 ? left : right;
    }
  } else if (stepB != 0) {
    const T left = *a;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const T right = b[i];
      y[i] = c[i] != 0 ? left : right;
    }
  } else {
    const T left = *a, right = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = c[i] != 0 ? left : right;
  }
}

template <typename T>
std::unique_ptr<Kernel> make(const Broadcast& broadcast, int threads) {
  return makeBodyKernel("vector loop", [=](const KernelCall& call) {
    const auto* c = input<std::uint8_t>(call, 0);
    const T *a = input<T>(call, 1), *b = input<T>(call, 2);
    T* y = output<T>(call, 0);
    parallelElements(broadcast.elements(), threads, [&](std::int64_t begin, std::int64_t end) {
      broadcast.runs(begin, end, [&](const Broadcast::Run& run) {
        whereLoop(c + run.at[0], broadcast.step(0), a + run.at[1], broadcast.step(1), b + run.at[2], broadcast.step(2),
                  y + run.out, run.count);
      });
    });
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeWhere(const KernelSpec& spec) {
  if (spec.inputs.size() != 3 || spec.outputs.size() != 1) return notTaken(spec, "other than three operands");
  const DType dtype = spec.outputs[0].dtype;
  if (dtype == DType::kString || !takesInput(spec, 0, DType::kBool) || !takesInput(spec, 1, dtype) ||
      !takesInput(spec, 2, dtype) || !takesOutput(spec, 0, dtype))
    return notTaken(spec, "a condition and two values of one type expected");
  SS_ASSIGN(const Broadcast broadcast,
            Broadcast::of(spec, spec.outputs[0].dims, {&spec.inputs[0].dims, &spec.inputs[1].dims, &spec.inputs[2].dims}));
  switch (dtypeSize(dtype)) {
    case 1: return make<std::uint8_t>(broadcast, spec.threads);
    case 4: return make<std::uint32_t>(broadcast, spec.threads);
    case 8: return make<std::uint64_t>(broadcast, spec.threads);
    default: return notTaken(spec, "elements of 2 bytes");
  }
}

}  // namespace stepscope::cpu
