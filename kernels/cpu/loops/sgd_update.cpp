// SgdUpdate with momentum, dampening and Nesterov's form.
#include "kernels/cpu/loops/support.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::cpu {
namespace {

struct Factors {
  float lr = 0, scale = 1, decay = 0, momentum = 0, fresh = 1;  // buffer' = momentum * buffer + fresh * g
  float own = 0, buffered = 1;                                  // p' = p - lr * (own * g + buffered * buffer')
};

SS_CLONES void plainLoop(const Factors& factors, const float* p, const float* g, float* np, std::int64_t n) {
  const Factors f = factors;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) np[i] = p[i] - f.lr * (g[i] * f.scale + f.decay * p[i]);
}

SS_CLONES void momentumLoop(const Factors& factors, const float* p, const float* g, const float* b, float* np, float* nb, std::int64_t n) {
  const Factors f = factors;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float old = p[i], gradient = g[i] * f.scale + f.decay * old, buffer = f.momentum * b[i] + f.fresh * gradient;
    nb[i] = buffer;
    np[i] = old - f.lr * (f.own * gradient + f.buffered * buffer);
  }
}

// The first buffer is the gradient, whatever the memory held.
SS_CLONES void firstLoop(const Factors& factors, const float* p, const float* g, float* np, float* nb, std::int64_t n) {
  const Factors f = factors;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float old = p[i], gradient = g[i] * f.scale + f.decay * old;
    nb[i] = gradient;
    np[i] = old - f.lr * (f.own * gradient + f.buffered * gradient);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeSgdUpdate(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0) || !takesScalar(spec, 3) || (spec.inputPresent(4) && !takesScalar(spec, 4)) ||
      (spec.inputPresent(5) && !takesScalar(spec, 5)))
    return notTaken(spec, "operands other than float32 and scalars");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  const bool hasMomentum = spec.inputPresent(2);
  if (elementCount(spec.inputs[1].dims) != count || elementCount(spec.outputs[0].dims) != count || hasMomentum != spec.outputPresent(1) ||
      !takesOptional(spec, 2, count) || !takesOptionalOutput(spec, 1, count))
    return notTaken(spec, "states of another size");
  const SgdParams params(spec.attrs);
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    Factors f;
    f.lr = static_cast<float>(elementAsDouble(call.inputs[3], 0));
    f.scale = static_cast<float>(call.inputPresent(4) ? elementAsDouble(call.inputs[4], 0) : 1);
    f.decay = static_cast<float>(params.weightDecay);
    f.momentum = static_cast<float>(params.momentum);
    f.fresh = static_cast<float>(1 - params.dampening);
    f.own = params.nesterov ? 1 : 0;
    f.buffered = params.nesterov ? f.momentum : 1;
    const bool first = call.inputPresent(5) && elementAsDouble(call.inputs[5], 0) <= 1;
    parallelParts(count, partsOf(count, 2, threads), 64, [&](int, std::int64_t at, std::int64_t end) {
      const float *p = input(call, 0) + at, *g = input(call, 1) + at;
      float* np = output(call, 0) + at;
      if (!hasMomentum)
        plainLoop(f, p, g, np, end - at);
      else if (first)
        firstLoop(f, p, g, np, output(call, 1) + at, end - at);
      else
        momentumLoop(f, p, g, input(call, 2) + at, np, output(call, 1) + at, end - at);
    });
    return {};
  });
}

}  // namespace stepscope::cpu
