// LAMB (contract in kernels/reference/elementwise/optimizer.h): what all elements share, the sums of squares of the
// parameter and of its update in parts, the ratio of their norms, then the elements. Sums are double, and joined in a fixed
// order. A gradient may be of a low type, and the new parameter is rounded into a copy of that type where there is one.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/low_operands.h"
#include "kernels/cuda/support.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::cuda {
inline namespace lamb_cu {

constexpr int kEach = kFew;  // elements of a thread
constexpr std::int64_t kBlock = kThreads * kEach;

enum LambFactor { kBeta1, kRest1, kBeta2, kRest2, kScale, kUnbias1, kUnbias2, kEps, kDecay, kRate, kTrust, kLambFactors };

struct LambConstants {
  double beta1 = 0, beta2 = 0, eps = 0, weightDecay = 0;
};

// One thread.
SS_GLOBAL void lambFactors(LambConstants c, Global<const float> lr, Global<const std::int64_t> step,
                           Global<const float> scale, Global<float> factors) {
  const double at = static_cast<double>(step[0]);
  factors[kBeta1] = static_cast<float>(c.beta1);
  factors[kRest1] = static_cast<float>(1 - c.beta1);
  factors[kBeta2] = static_cast<float>(c.beta2);
  factors[kRest2] = static_cast<float>(1 - c.beta2);
  factors[kScale] = scale.present() ? static_cast<float>(scale[0]) : 1.0F;
  factors[kUnbias1] = static_cast<float>(1 / (1 - pow(c.beta1, at)));
  factors[kUnbias2] = static_cast<float>(1 / (1 - pow(c.beta2, at)));
  factors[kEps] = static_cast<float>(c.eps);
  factors[kDecay] = static_cast<float>(c.weightDecay);
  factors[kRate] = lr[0];
  factors[kTrust] = 1;
}

// The operands of one update: [count] each; results may lie over what they follow.
template <DType kLow>
struct LambOperands {
  Global<const float> p, m, v;
  Gradient<kLow> g;
};
// Four neighbours of them, and of the update.
struct Updated {
  float p[kEach] = {}, m[kEach] = {}, v[kEach] = {}, u[kEach] = {};
};
// The n elements from `first` on.
template <DType kLow>
SS_DEVICE Updated updated(const LambOperands<kLow>& o, const Global<const float>& f, std::int64_t first, int n) {
  Updated all;
  float g[kEach] = {};
  load(o.p, first, n, all.p);
  loadGradient(o.g, first, n, g);
  load(o.m, first, n, all.m);
  load(o.v, first, n, all.v);
  for (int e = 0; e < n; ++e) {
    const float scaled = g[e] * f[kScale];
    all.m[e] = f[kBeta1] * all.m[e] + f[kRest1] * scaled;
    all.v[e] = f[kBeta2] * all.v[e] + f[kRest2] * (scaled * scaled);
    all.u[e] = all.m[e] * f[kUnbias1] / (sqrtf(all.v[e] * f[kUnbias2]) + f[kEps]) + f[kDecay] * all.p[e];
  }
  return all;
}
// Of this thread: the first of its elements, and how many it has.
SS_DEVICE std::int64_t firstElement() { return gpu::blockIndex() * kBlock + gpu::threadIndex() * kEach; }
SS_DEVICE int elementsBelow(std::int64_t first, std::int64_t count) {
  return first >= count ? 0 : static_cast<int>(count - first < kEach ? count - first : kEach);
}

// squares[block, 2]: of the parameter and of its update.
template <DType kLow>
SS_GLOBAL void lambSquares(LambOperands<kLow> operands, Global<const float> factors, Global<double> squares,
                           std::int64_t count) {
  const std::int64_t first = firstElement();
  const int n = elementsBelow(first, count);
  double parameter = 0, update = 0;
  if (n > 0) {
    const Updated all = updated(operands, factors, first, n);
    for (int e = 0; e < n; ++e) {
      parameter += static_cast<double>(all.p[e]) * static_cast<double>(all.p[e]);
      update += static_cast<double>(all.u[e]) * static_cast<double>(all.u[e]);
    }
  }
  parameter = joinBlock<Plus>(parameter);
  update = joinBlock<Plus>(update);
  if (gpu::threadIndex() != 0) return;
  squares[2 * gpu::blockIndex()] = parameter;
  squares[2 * gpu::blockIndex() + 1] = update;
}

// One block: factors[kTrust] = the ratio of the norms; 1 where one of them is zero.
SS_GLOBAL void lambTrust(Global<const double> squares, Global<float> factors, std::int64_t parts) {
  double parameter = 0, update = 0;
  for (std::int64_t i = gpu::threadIndex(); i < parts; i += gpu::blockSize()) {
    parameter += squares[2 * i];
    update += squares[2 * i + 1];
  }
  parameter = joinBlock<Plus>(parameter);
  update = joinBlock<Plus>(update);
  if (gpu::threadIndex() == 0)
    factors[kTrust] = parameter > 0 && update > 0 ? static_cast<float>(sqrt(parameter / update)) : 1.0F;
}

// np, nm?, nv?, copy?: [count].
template <DType kLow>
SS_GLOBAL void lambElements(LambOperands<kLow> operands, Global<const float> factors, Global<float> np, Global<float> nm,
                            Global<float> nv, Copy<kLow> copy, std::int64_t count) {
  const std::int64_t first = firstElement();
  const int n = elementsBelow(first, count);
  if (n == 0) return;
  const Updated all = updated(operands, factors, first, n);
  const float rate = factors[kRate] * factors[kTrust];
  float next[kEach] = {};
  for (int e = 0; e < n; ++e) next[e] = all.p[e] - rate * all.u[e];
  store(np, first, n, next);
  storeCopy(copy, first, n, next);
  if (nm.present()) store(nm, first, n, all.m);
  if (nv.present()) store(nv, first, n, all.v);
}

template <DType kLow>
Result<std::unique_ptr<Kernel>> lambUpdate(const KernelSpec& spec) {
  if (spec.inputs.size() < 6 || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (!takesGradient(spec, 1, count, kLow)) return notTaken(spec, "a gradient of another size or type");
  for (std::size_t i = 2; i < 4; ++i)
    if (!takesInput(spec, i) || elementCount(spec.inputs[i].dims) != count)
      return notTaken(spec, "operands other than float32 of one size");
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count) ||
      !takesOptionalOutput(spec, 2, count) || !takesOptionalOutput(spec, 3, count, kLow))
    return notTaken(spec, "results of another size");
  const bool copies = writesCopies(spec.attrs);
  if (!spec.inputPresent(4) || !takesOptional(spec, 4, 1) || !spec.inputPresent(5) ||
      !takesOptional(spec, 5, 1, DType::kI64) || !takesOptional(spec, 6, 1))
    return notTaken(spec, "a learning rate, step or scale of another type");
  const AdamParams params(spec.attrs);
  const LambConstants constants{params.beta1, params.beta2, params.eps, params.weightDecay};
  const std::int64_t parts = blocksFor(count, kBlock);
  constexpr std::size_t kSquares = 64;  // bytes: where the sums of squares begin
  static_assert(kLambFactors * sizeof(float) <= kSquares);
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(gpu.run("lamb: factors", gpu::function<lambFactors>, 1, 1, constants, gpu.in<float>(4), gpu.in<std::int64_t>(5),
                   gpu.in<float>(6), gpu.room<float>(0, kLambFactors)));
    const auto operands = [&] {
      return LambOperands<kLow>{gpu.in<float>(0), gpu.in<float>(2), gpu.in<float>(3), gradientOf<kLow>(gpu, 1)};
    };
    SS_TRY(gpu.run("lamb: squares", gpu::function<lambSquares<kLow>>, parts, kThreads, operands(),
                   gpu.readRoom<float>(0, kLambFactors), gpu.room<double>(kSquares, 2 * parts), count));
    SS_TRY(gpu.run("lamb: ratio", gpu::function<lambTrust>, 1, threadsForRow(parts),
                   gpu.readRoom<double>(kSquares, 2 * parts), gpu.room<float>(0, kLambFactors, Access::kReadWrite), parts));
    return gpu.run("lamb", gpu::function<lambElements<kLow>>, parts, kThreads, operands(),
                   gpu.readRoom<float>(0, kLambFactors), gpu.out<float>(0), gpu.out<float>(1), gpu.out<float>(2),
                   copyOf<kLow>(gpu, copies, 3), count);
  };
  return makeLaunched("update", body, kSquares + 2 * static_cast<std::size_t>(parts) * sizeof(double));
}

}  // namespace lamb_cu

// parameter, gradient, m, v, lr, step, scale? → parameter', m'?, v'?, copy?
Result<std::unique_ptr<Kernel>> makeLambUpdate(const KernelSpec& spec) {
  return lowTypeOf(spec) == DType::kF16 ? lambUpdate<DType::kF16>(spec) : lambUpdate<DType::kBF16>(spec);
}

}  // namespace stepscope::cuda
