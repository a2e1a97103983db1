// AdamUpdate, of one parameter and of several, and LambUpdate in float with the factors of the step in double. Gradients may
// lie in a low type, and a copy of the parameter may be written in one: block by block, in the first cache. Results that
// lie beside their operands and exceed the caches are written past them: they are read next in the step after this one.
#include <array>
#include <cmath>

#include "kernels/cpu/loops/low_operands.h"
#include "kernels/cpu/loops/members.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;
// Of an element, in elements of a plain loop: 0.33 ns where the seven streams come from the second cache.
constexpr std::int64_t kCost = 1;

// What is the same for all elements of one call. u = rate * m' / (sqrt(v') * root + eps) + decayed * p
struct Factors {
  float keep = 1, decay = 0;  // p' = p * keep - u; g += decay p
  float beta1 = 0, rest1 = 0, beta2 = 0, rest2 = 0;
  float scale = 1, rate = 0, root = 0, eps = 0, decayed = 0;
};

SS_CLONES void adamBlock(const Factors& factors, const float* p, const float* g, const float* m, const float* v, float* np,
                         float* nm, float* nv, std::int64_t n) {
  const Factors f = factors;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float old = p[i], gradient = g[i] * f.scale + f.decay * old;
    const float mean = f.beta1 * m[i] + f.rest1 * gradient, square = f.beta2 * v[i] + f.rest2 * (gradient * gradient);
    np[i] = old * f.keep - f.rate * mean / (std::sqrt(square) * f.root + f.eps);
    nm[i] = mean;
    nv[i] = square;
  }
}

// The squares of parameter and update.
struct Norms {
  double parameter = 0, update = 0;
};
SS_CLONES Norms lambNorms(const Factors& factors, const float* p, const float* g, const float* m, const float* v,
                          std::int64_t n) {
  const Factors f = factors;
  double parameter = 0, update = 0;
#pragma omp simd reduction(+ : parameter, update)
  for (std::int64_t i = 0; i < n; ++i) {
    const float old = p[i], gradient = g[i] * f.scale;
    const float mean = f.beta1 * m[i] + f.rest1 * gradient, square = f.beta2 * v[i] + f.rest2 * (gradient * gradient);
    const float u = f.rate * mean / (std::sqrt(square) * f.root + f.eps) + f.decayed * old;
    parameter += static_cast<double>(old) * static_cast<double>(old);
    update += static_cast<double>(u) * static_cast<double>(u);
  }
  return {parameter, update};
}
SS_CLONES void lambBlock(const Factors& factors, float step, const float* p, const float* g, const float* m, const float* v,
                         float* np, float* nm, float* nv, std::int64_t n) {
  const Factors f = factors;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float old = p[i], gradient = g[i] * f.scale;
    const float mean = f.beta1 * m[i] + f.rest1 * gradient, square = f.beta2 * v[i] + f.rest2 * (gradient * gradient);
    np[i] = old - step * (f.rate * mean / (std::sqrt(square) * f.root + f.eps) + f.decayed * old);
    nm[i] = mean;
    nv[i] = square;
  }
}

struct Operands {
  const float *p, *m, *v;
  FloatSource g;
  float *np, *nm, *nv;
  FloatTarget copy;
  bool beside;  // no result lies over its operand
};
Operands operandsOf(const KernelCall& call, bool copies, std::size_t in = 0, std::size_t out = 0) {
  Operands o{input(call, in),
             input(call, in + 2),
             input(call, in + 3),
             FloatSource(call.inputs[in + 1]),
             output(call, out),
             output(call, out + 1),
             output(call, out + 2),
             copies ? FloatTarget(call.outputs[out + 3]) : FloatTarget(),
             false};
  o.beside = o.np != o.p && o.nm != o.m && o.nv != o.v;
  return o;
}

// block(at, n, g, np, nm, nv) for blocks of the elements from `begin` to `end`; g: their gradients.
template <typename Block>
void updateRange(const Operands& o, std::int64_t begin, std::int64_t end, bool stream, Block&& block) {
  std::array<float, kBlock> p, m, v, wide;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    const float* g = o.g.read(at, n, wide.data());
    if (!stream) {
      block(at, n, g, o.np + at, o.nm + at, o.nv + at);
      o.copy.write(at, n, o.np + at);
      continue;
    }
    block(at, n, g, p.data(), m.data(), v.data());
    o.copy.write(at, n, p.data());
    streamCopy(o.np + at, p.data(), n);
    streamCopy(o.nm + at, m.data(), n);
    streamCopy(o.nv + at, v.data(), n);
  }
  if (stream) finishStreams();
}

template <typename Block>
void update(const Operands& o, std::int64_t count, int threads, Block&& block) {
  const bool stream = o.beside && count * 4 > kStreamBytes;
  parallelParts(count, partsOf(count, kCost, threads), 64,
                [&](int, std::int64_t begin, std::int64_t end) { updateRange(o, begin, end, stream, block); });
}

// `shared`: the input that is the learning rate; step and scale follow it.
Factors factorsOf(const AdamParams& params, const KernelCall& call, bool lamb, std::size_t shared = 4) {
  const double lr = elementAsDouble(call.inputs[shared], 0), step = elementAsDouble(call.inputs[shared + 1], 0);
  Factors f;
  f.keep = static_cast<float>(params.decoupled && !lamb ? 1 - lr * params.weightDecay : 1);
  f.decay = static_cast<float>(params.decoupled || lamb ? 0 : params.weightDecay);
  f.decayed = static_cast<float>(params.weightDecay);
  f.beta1 = static_cast<float>(params.beta1);
  f.rest1 = static_cast<float>(1 - params.beta1);
  f.beta2 = static_cast<float>(params.beta2);
  f.rest2 = static_cast<float>(1 - params.beta2);
  f.scale = static_cast<float>(call.inputPresent(shared + 2) ? elementAsDouble(call.inputs[shared + 2], 0) : 1);
  f.rate = static_cast<float>((lamb ? 1 : lr) / (1 - std::pow(params.beta1, step)));
  f.root = static_cast<float>(1 / std::sqrt(1 - std::pow(params.beta2, step)));
  f.eps = static_cast<float>(params.eps);
  return f;
}

Status checkShared(const KernelSpec& spec, std::size_t shared) {
  if (!takesScalar(spec, shared) || !takesScalar(spec, shared + 1) ||
      (spec.inputPresent(shared + 2) && !takesScalar(spec, shared + 2)))
    return notTaken(spec, "a learning rate, step or scale other than scalars");
  return {};
}

// The operands of one parameter, from input `in` and output `out` on.
Status checkOperands(const KernelSpec& spec, bool copies, std::size_t in = 0, std::size_t out = 0) {
  if (!takesInput(spec, in) || spec.outputs.size() < out + 3) return notTaken(spec, "operands other than float32");
  const std::int64_t count = elementCount(spec.inputs[in].dims);
  if (!spec.inputPresent(in + 1) || !takesAnyFloat(spec.inputs[in + 1], count))
    return notTaken(spec, "a gradient of another size or type");
  if (copies && (!spec.outputPresent(out + 3) || !takesAnyFloat(spec.outputs[out + 3], count)))
    return notTaken(spec, "a copy of another size or type");
  for (std::size_t i = 2; i < 4; ++i)
    if (!spec.inputPresent(in + i) || !takesOptional(spec, in + i, count)) return notTaken(spec, "states of another size");
  for (std::size_t i = 0; i < 3; ++i)
    if (!spec.outputPresent(out + i) || !takesOptionalOutput(spec, out + i, count))
      return notTaken(spec, "results of another size");
  return {};
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeAdamUpdate(const KernelSpec& spec) {
  SS_TRY(checkShared(spec, 4));
  const bool copies = writesCopies(spec.attrs);
  SS_TRY(checkOperands(spec, copies));
  const AdamParams params(spec.attrs);
  return makeBodyKernel(
      "vector loop", [=, count = elementCount(spec.inputs[0].dims), threads = spec.threads](const KernelCall& call) {
        const Factors f = factorsOf(params, call, false);
        const Operands o = operandsOf(call, copies);
        update(o, count, threads, [&](std::int64_t at, std::int64_t n, const float* g, float* np, float* nm, float* nv) {
          adamBlock(f, o.p + at, g, o.m + at, o.v + at, np, nm, nv, n);
        });
      });
}

Result<std::unique_ptr<Kernel>> makeAdamUpdates(const KernelSpec& spec) {
  constexpr std::size_t kShared = 3, kInputs = 4;
  const bool copies = writesCopies(spec.attrs);
  const std::size_t results = copies ? 4 : 3;  // of a parameter
  SS_TRY(checkShared(spec, 0));
  Members members;
  for (std::size_t in = kShared; in < spec.inputs.size(); in += kInputs) {
    SS_TRY(checkOperands(spec, copies, in, members.count() * results));
    members.add(elementCount(spec.inputs[in].dims));
  }
  const AdamParams params(spec.attrs);
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) {
    const Factors f = factorsOf(params, call, false, 0);
    parallelParts(members.total(), partsOf(members.total(), kCost, threads), 64,
                  [&](int, std::int64_t begin, std::int64_t end) {
                    members.within(begin, end, [&](std::size_t m, std::int64_t from, std::int64_t to) {
                      const Operands o = operandsOf(call, copies, kShared + m * kInputs, m * results);
                      updateRange(o, from, to, false,
                                  [&](std::int64_t at, std::int64_t n, const float* g, float* np, float* nm, float* nv) {
                                    adamBlock(f, o.p + at, g, o.m + at, o.v + at, np, nm, nv, n);
                                  });
                    });
                  });
  });
}

Result<std::unique_ptr<Kernel>> makeLambUpdate(const KernelSpec& spec) {
  SS_TRY(checkShared(spec, 4));
  const bool copies = writesCopies(spec.attrs);
  SS_TRY(checkOperands(spec, copies));
  const AdamParams params(spec.attrs);
  const std::int64_t count = elementCount(spec.inputs[0].dims), chunk = 16 * kBlock, chunks = (count + chunk - 1) / chunk;
  const auto body = [=, threads = spec.threads](const KernelCall& call) {
    const Factors f = factorsOf(params, call, true);
    const Operands o = operandsOf(call, copies);
    // Both norms before anything is written: results may lie over operands. Chunks make the sums independent of the threads.
    auto* norms = reinterpret_cast<Norms*>(call.workspace.data());
    parallelRows(chunks, chunk, threads, [&](std::int64_t begin, std::int64_t end) {
      std::array<float, 16 * kBlock> wide;
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t at = c * chunk, n = std::min(chunk, count - at);
        norms[c] = lambNorms(f, o.p + at, o.g.read(at, n, wide.data()), o.m + at, o.v + at, n);
      }
    });
    Norms total;
    for (std::int64_t c = 0; c < chunks; ++c) {
      total.parameter += norms[c].parameter;
      total.update += norms[c].update;
    }
    const double trust = total.parameter > 0 && total.update > 0 ? std::sqrt(total.parameter / total.update) : 1;
    const auto step = static_cast<float>(elementAsDouble(call.inputs[4], 0) * trust);
    update(o, count, threads, [&](std::int64_t at, std::int64_t n, const float* g, float* np, float* nm, float* nv) {
      lambBlock(f, step, o.p + at, g, o.m + at, o.v + at, np, nm, nv, n);
    });
  };
  return makeBodyKernel("vector loop", body, static_cast<std::size_t>(chunks) * sizeof(Norms));
}

}  // namespace stepscope::cpu
