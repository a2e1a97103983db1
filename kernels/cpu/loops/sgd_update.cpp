// SgdUpdate, of one parameter and of several, with momentum, dampening and Nesterov's form. Gradients may lie in a low type,
// and a copy of the parameter may be written in one: block by block, in the first cache.
#include <array>

#include "kernels/cpu/loops/low_operands.h"
#include "kernels/cpu/loops/members.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;

struct Factors {
  float lr = 0, scale = 1, decay = 0, momentum = 0, fresh = 1;  // buffer' = momentum * buffer + fresh * g
  float own = 0, buffered = 1;                                  // p' = p - lr * (own * g + buffered * buffer')
  bool first = false;                                           // there is no buffer yet
};

SS_CLONES void plainLoop(const Factors& factors, const float* p, const float* g, float* np, std::int64_t n) {
  const Factors f = factors;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) np[i] = p[i] - f.lr * (g[i] * f.scale + f.decay * p[i]);
}

SS_CLONES void momentumLoop(const Factors& factors, const float* p, const float* g, const float* b, float* np, float* nb,
                            std::int64_t n) {
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

// The learning rate is input `shared`; scale and step follow it.
Factors factorsOf(const SgdParams& params, const KernelCall& call, std::size_t shared) {
  Factors f;
  f.lr = static_cast<float>(elementAsDouble(call.inputs[shared], 0));
  f.scale = static_cast<float>(call.inputPresent(shared + 1) ? elementAsDouble(call.inputs[shared + 1], 0) : 1);
  f.decay = static_cast<float>(params.weightDecay);
  f.momentum = static_cast<float>(params.momentum);
  f.fresh = static_cast<float>(1 - params.dampening);
  f.own = params.nesterov ? 1 : 0;
  f.buffered = params.nesterov ? f.momentum : 1;
  f.first = call.inputPresent(shared + 2) && elementAsDouble(call.inputs[shared + 2], 0) <= 1;
  return f;
}

// Elements `begin` to `end` of the parameter whose operands begin with input `in` and output `out`.
void update(const Factors& f, const KernelCall& call, bool copies, std::size_t in, std::size_t out, std::int64_t begin,
            std::int64_t end) {
  const FloatSource gradient(call.inputs[in + 1]);
  const FloatTarget copy = copies ? FloatTarget(call.outputs[out + 2]) : FloatTarget();
  std::array<float, kBlock> wide;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    const float *p = input(call, in) + at, *g = gradient.read(at, n, wide.data());
    float* np = output(call, out) + at;
    if (!call.inputPresent(in + 2))
      plainLoop(f, p, g, np, n);
    else if (f.first)
      firstLoop(f, p, g, np, output(call, out + 1) + at, n);
    else
      momentumLoop(f, p, g, input(call, in + 2) + at, np, output(call, out + 1) + at, n);
    copy.write(at, n, np);
  }
}

Status checkShared(const KernelSpec& spec, std::size_t shared) {
  if (!takesScalar(spec, shared) || (spec.inputPresent(shared + 1) && !takesScalar(spec, shared + 1)) ||
      (spec.inputPresent(shared + 2) && !takesScalar(spec, shared + 2)))
    return notTaken(spec, "a learning rate, scale or step other than scalars");
  return {};
}

Status checkOperands(const KernelSpec& spec, bool copies, std::size_t in, std::size_t out) {
  if (!takesInput(spec, in) || !spec.inputPresent(in + 1) || !takesOutput(spec, out))
    return notTaken(spec, "operands other than float32");
  const std::int64_t count = elementCount(spec.inputs[in].dims);
  if (!takesAnyFloat(spec.inputs[in + 1], count)) return notTaken(spec, "a gradient of another size or type");
  if (copies && (!spec.outputPresent(out + 2) || !takesAnyFloat(spec.outputs[out + 2], count)))
    return notTaken(spec, "a copy of another size or type");
  if (elementCount(spec.outputs[out].dims) != count || spec.inputPresent(in + 2) != spec.outputPresent(out + 1) ||
      !takesOptional(spec, in + 2, count) || !takesOptionalOutput(spec, out + 1, count))
    return notTaken(spec, "states of another size");
  return {};
}

constexpr std::int64_t kCost = 2;  // of an element, in elements of a plain loop

}  // namespace

Result<std::unique_ptr<Kernel>> makeSgdUpdate(const KernelSpec& spec) {
  SS_TRY(checkShared(spec, 3));
  const bool copies = writesCopies(spec.attrs);
  SS_TRY(checkOperands(spec, copies, 0, 0));
  const SgdParams params(spec.attrs);
  return makeBodyKernel(
      "vector loop", [=, count = elementCount(spec.inputs[0].dims), threads = spec.threads](const KernelCall& call) {
        const Factors f = factorsOf(params, call, 3);
        parallelParts(count, partsOf(count, kCost, threads), 64,
                      [&](int, std::int64_t at, std::int64_t end) { update(f, call, copies, 0, 0, at, end); });
      });
}

Result<std::unique_ptr<Kernel>> makeSgdUpdates(const KernelSpec& spec) {
  constexpr std::size_t kShared = 3, kInputs = 3;
  const bool copies = writesCopies(spec.attrs);
  const std::size_t results = copies ? 3 : 2;  // of a parameter
  SS_TRY(checkShared(spec, 0));
  Members members;
  for (std::size_t in = kShared; in < spec.inputs.size(); in += kInputs) {
    SS_TRY(checkOperands(spec, copies, in, members.count() * results));
    members.add(elementCount(spec.inputs[in].dims));
  }
  const SgdParams params(spec.attrs);
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) {
    const Factors f = factorsOf(params, call, 0);
    parallelParts(members.total(), partsOf(members.total(), kCost, threads), 64,
                  [&](int, std::int64_t begin, std::int64_t end) {
                    members.within(begin, end, [&](std::size_t m, std::int64_t from, std::int64_t to) {
                      update(f, call, copies, kShared + m * kInputs, m * results, from, to);
                    });
                  });
  });
}

}  // namespace stepscope::cpu
