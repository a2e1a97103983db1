// Sum, Mean, Max, Min of several operands of one shape, in one pass; two operands that broadcast go to makeBinary.
#include <array>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

struct Total {
  SS_INLINE static float of(float a, float b) { return a + b; }
};
struct Largest {
  SS_INLINE static float of(float a, float b) { return a != a || a > b ? a : b; }
};
struct Smallest {
  SS_INLINE static float of(float a, float b) { return a != a || a < b ? a : b; }
};

template <typename F>
SS_CLONES void joinLoop(float* sum, const float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = F::of(sum[i], x[i]);
}
SS_CLONES void scaleLoop(float* y, const float* x, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeVariadic(const KernelSpec& spec) {
  const std::size_t operands = spec.inputs.size();
  if (operands == 2 && spec.op != "Mean") return makeBinary(spec);
  if (operands == 0 || !takesOutput(spec, 0)) return notTaken(spec, "no float32 operands");
  for (std::size_t i = 0; i < operands; ++i)
    if (!takesInput(spec, i) || elementCount(spec.inputs[i].dims) != elementCount(spec.outputs[0].dims))
      return notTaken(spec, "operands of several shapes");
  const auto join = spec.op == "Max" ? joinLoop<Largest> : spec.op == "Min" ? joinLoop<Smallest> : joinLoop<Total>;
  const float factor = spec.op == "Mean" ? 1.0F / static_cast<float>(operands) : 1.0F;
  return makeBodyKernel("vector loop",
                        [=, count = elementCount(spec.outputs[0].dims), threads = spec.threads](const KernelCall& call) {
                          parallelElements(count, threads, [&](std::int64_t begin, std::int64_t end) {
                            std::array<float, 2048> sum;  // y may lie over an operand
                            for (std::int64_t at = begin; at < end; at += static_cast<std::int64_t>(sum.size())) {
                              const std::int64_t n = std::min(static_cast<std::int64_t>(sum.size()), end - at);
                              std::copy_n(input(call, 0) + at, n, sum.data());
                              for (std::size_t i = 1; i < operands; ++i) join(sum.data(), input(call, i) + at, n);
                              scaleLoop(output(call, 0) + at, sum.data(), factor, n);
                            }
                          });
                        });
}

}  // namespace stepscope::cpu
