// The gradient of Gelu, both forms: the slope's terms share one exponential.
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

// dx may lie over dy or x.
SS_CLONES void erfForm(const float* dy, const float* x, float* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * geluErfSlopeOf(x[i]);
}

SS_CLONES void tanhForm(const float* dy, const float* x, float* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * geluTanhSlopeOf(x[i]);
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeGeluGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.outputs[0].dims);
  if (elementCount(spec.inputs[0].dims) != count || elementCount(spec.inputs[1].dims) != count)
    return notTaken(spec, "operands of two sizes");
  if (spec.inputs[0].layout != spec.outputs[0].layout || spec.inputs[1].layout != spec.outputs[0].layout)
    return notTaken(spec, "operands in several layouts");
  const auto form = spec.attrs.text("approximate", "none") == "tanh" ? tanhForm : erfForm;
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float *dy = input(call, 0), *x = input(call, 1);
    float* dx = output(call, 0);
    parallelElements(count, threads,
                     [&](std::int64_t begin, std::int64_t end) { form(dy + begin, x + begin, dx + begin, end - begin); });
    return {};
  });
}

}  // namespace stepscope::cpu
