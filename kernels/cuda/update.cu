// Updates of the optimizer (contracts in kernels/reference/elementwise/optimizer.h), of one parameter and of several: up to
// kMembers of them in one launch. What all elements share is computed first, in double, by one thread. Accumulate adds a
// gradient to the sum of its round and, where clipping asks for it, gives the sum of squares.
//
// A gradient is float32 or of the low type that the kernel is made for, and widened where it is read; the copy of the
// parameter in that type, where there is one, is rounded from the new parameter.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/low_operands.h"
#include "kernels/cuda/support.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::cuda {
inline namespace update_cu {

constexpr int kMembers = 16;                       // parameters of a launch
constexpr int kEach = kFew;                        // elements of a thread
constexpr std::int64_t kBlock = kThreads * kEach;  // of a block
constexpr std::size_t kSharedInputs = 3;           // of AdamUpdates and SgdUpdates

enum Factor { kKeep, kDecay, kBeta1, kRest1, kBeta2, kRest2, kScale, kRate, kRoot, kEps, kAdamFactors };
enum SgdFactor { kLr, kSgdScale, kSgdDecay, kMomentum, kFresh, kOwn, kBuffered, kFirst, kSgdFactors };

struct AdamConstants {
  double beta1 = 0, beta2 = 0, eps = 0, weightDecay = 0;
  bool decoupled = false;
};

// p' = p * keep - rate * m' / (sqrt(v') * root + eps); g = scale * g + decay * p.
SS_GLOBAL void adamFactors(AdamConstants c, Global<const float> lr, Global<const std::int64_t> step,
                           Global<const float> scale, Global<float> factors) {
  const double rate = static_cast<double>(lr[0]), at = static_cast<double>(step[0]);
  factors[kKeep] = static_cast<float>(c.decoupled ? 1 - rate * c.weightDecay : 1);
  factors[kDecay] = static_cast<float>(c.decoupled ? 0 : c.weightDecay);
  factors[kBeta1] = static_cast<float>(c.beta1);
  factors[kRest1] = static_cast<float>(1 - c.beta1);
  factors[kBeta2] = static_cast<float>(c.beta2);
  factors[kRest2] = static_cast<float>(1 - c.beta2);
  factors[kScale] = scale.present() ? static_cast<float>(scale[0]) : 1.0F;
  factors[kRate] = static_cast<float>(rate / (1 - pow(c.beta1, at)));
  factors[kRoot] = static_cast<float>(1 / sqrt(1 - pow(c.beta2, at)));
  factors[kEps] = static_cast<float>(c.eps);
}

template <DType kLow>
struct AdamMember {
  Global<const float> p, m, v;
  Gradient<kLow> g;
  Global<float> np, nm, nv;
  Copy<kLow> copy;
  std::int64_t count = 0, firstBlock = 0;
};
template <DType kLow>
struct AdamMembers {
  int count = 0;
  AdamMember<kLow> member[kMembers];
};

template <typename Members>
SS_DEVICE int memberOf(const Members& members, std::int64_t block) {
  int at = 0;
  while (at + 1 < members.count && members.member[at + 1].firstBlock <= block) ++at;
  return at;
}

SS_DEVICE int elementsFrom(std::int64_t first, std::int64_t count) {
  return static_cast<int>(count - first < kEach ? count - first : kEach);
}

// Results may lie over what they follow.
template <DType kLow>
SS_GLOBAL void adamElements(AdamMembers<kLow> members, Global<const float> f) {
  const AdamMember<kLow>& o = members.member[memberOf(members, gpu::blockIndex())];
  const std::int64_t first = (gpu::blockIndex() - o.firstBlock) * kBlock + gpu::threadIndex() * kEach;
  if (first >= o.count) return;
  const float keep = f[kKeep], decay = f[kDecay], beta1 = f[kBeta1], rest1 = f[kRest1], beta2 = f[kBeta2], rest2 = f[kRest2],
              scale = f[kScale], rate = f[kRate], root = f[kRoot], eps = f[kEps];
  const int n = elementsFrom(first, o.count);
  float p[kEach] = {}, g[kEach] = {}, m[kEach] = {}, v[kEach] = {};
  load(o.p, first, n, p);
  loadGradient(o.g, first, n, g);
  load(o.m, first, n, m);
  load(o.v, first, n, v);
  for (int e = 0; e < n; ++e) {
    const float gradient = g[e] * scale + decay * p[e];
    m[e] = beta1 * m[e] + rest1 * gradient;
    v[e] = beta2 * v[e] + rest2 * (gradient * gradient);
    p[e] = p[e] * keep - rate * m[e] / (sqrtf(v[e]) * root + eps);
  }
  store(o.np, first, n, p);
  store(o.nm, first, n, m);
  store(o.nv, first, n, v);
  storeCopy(o.copy, first, n, p);
}

struct SgdConstants {
  double momentum = 0, dampening = 0, weightDecay = 0;
  bool nesterov = false;
};

// g = scale * g + decay * p; b' = first ? g : momentum * b + fresh * g; p' = p - lr * (own * g + buffered * b')
SS_GLOBAL void sgdFactors(SgdConstants c, Global<const float> lr, Global<const float> scale, Global<const std::int64_t> step,
                          Global<float> factors) {
  factors[kLr] = lr[0];
  factors[kSgdScale] = scale.present() ? static_cast<float>(scale[0]) : 1.0F;
  factors[kSgdDecay] = static_cast<float>(c.weightDecay);
  factors[kMomentum] = static_cast<float>(c.momentum);
  factors[kFresh] = static_cast<float>(1 - c.dampening);
  factors[kOwn] = c.nesterov ? 1.0F : 0.0F;
  factors[kBuffered] = c.nesterov ? static_cast<float>(c.momentum) : 1.0F;
  factors[kFirst] = step.present() && static_cast<std::int64_t>(step[0]) <= 1 ? 1.0F : 0.0F;
}

template <DType kLow>
struct SgdMember {
  Global<const float> p, b;
  Gradient<kLow> g;
  Global<float> np, nb;
  Copy<kLow> copy;
  std::int64_t count = 0, firstBlock = 0;
};
template <DType kLow>
struct SgdMembers {
  int count = 0;
  SgdMember<kLow> member[kMembers];
};

template <DType kLow>
SS_GLOBAL void sgdElements(SgdMembers<kLow> members, Global<const float> f) {
  const SgdMember<kLow>& o = members.member[memberOf(members, gpu::blockIndex())];
  const std::int64_t first = (gpu::blockIndex() - o.firstBlock) * kBlock + gpu::threadIndex() * kEach;
  if (first >= o.count) return;
  const float lr = f[kLr], scale = f[kSgdScale], decay = f[kSgdDecay], momentum = f[kMomentum], fresh = f[kFresh],
              own = f[kOwn], buffered = f[kBuffered];
  const bool isFirst = f[kFirst] != 0;
  const int n = elementsFrom(first, o.count);
  float p[kEach] = {}, g[kEach] = {}, b[kEach] = {};
  load(o.p, first, n, p);
  loadGradient(o.g, first, n, g);
  for (int e = 0; e < n; ++e) g[e] = g[e] * scale + decay * p[e];
  if (!o.b.present()) {
    for (int e = 0; e < n; ++e) p[e] = p[e] - lr * g[e];
    store(o.np, first, n, p);
    storeCopy(o.copy, first, n, p);
    return;
  }
  // The first buffer is the gradient, whatever the memory held.
  if (!isFirst) load(o.b, first, n, b);
  for (int e = 0; e < n; ++e) {
    b[e] = isFirst ? g[e] : momentum * b[e] + fresh * g[e];
    p[e] = p[e] - lr * (own * g[e] + buffered * b[e]);
  }
  store(o.nb, first, n, b);
  store(o.np, first, n, p);
  storeCopy(o.copy, first, n, p);
}

// next = gradient (+ sum); squares?[block]: of what the block has written.
template <DType kLow>
SS_GLOBAL void accumulateElements(Global<const float> sum, Gradient<kLow> gradient, Global<const std::uint8_t> first,
                                  Global<float> next, Global<double> squares, std::int64_t count) {
  const bool begins = first[0] != 0;
  const std::int64_t mine = gpu::blockIndex() * kBlock + gpu::threadIndex() * kEach;
  double own = 0;
  if (mine < count) {
    const int n = elementsFrom(mine, count);
    float value[kEach] = {}, before[kEach] = {};
    loadGradient(gradient, mine, n, value);
    if (!begins) load(sum, mine, n, before);
    for (int e = 0; e < n; ++e) {
      if (!begins) value[e] = before[e] + value[e];
      own += static_cast<double>(value[e]) * static_cast<double>(value[e]);
    }
    store(next, mine, n, value);
  }
  if (!squares.present()) return;
  own = joinBlock<Plus>(own);
  if (gpu::threadIndex() == 0) squares[gpu::blockIndex()] = own;
}

// One block: y = the sum of x[count].
SS_GLOBAL void sumSquares(Global<const double> x, Global<float> y, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = gpu::threadIndex(); i < count; i += gpu::blockSize()) sum += x[i];
  sum = joinBlock<Plus>(sum);
  if (gpu::threadIndex() == 0) y[0] = static_cast<float>(sum);
}

// Where the operands of one parameter begin.
struct Place {
  std::size_t input = 0, output = 0;
  std::int64_t count = 0;
};

bool takesShared(const KernelSpec& spec, std::size_t i, DType dtype, bool optional) {
  return spec.inputPresent(i) ? takesInput(spec, i, dtype) && elementCount(spec.inputs[i].dims) == 1 : optional;
}

// What stands at a place: parameter, gradient and states; their successors, and the copy behind them.
Status checkPlace(const KernelSpec& spec, const Place& place, std::size_t states, DType low, bool optionalStates) {
  const auto ofSize = [&](const OperandSpec& operand) { return elementCount(operand.dims) == place.count; };
  const std::size_t in = place.input, out = place.output;
  if (!takesInput(spec, in) || !takesGradient(spec, in + 1, place.count, low) || !takesOutput(spec, out) ||
      !ofSize(spec.outputs[out]))
    return notTaken(spec, "a parameter other than float32, or a gradient of another size");
  for (std::size_t i = 1; i <= states; ++i) {
    if (spec.inputPresent(in + 1 + i) != spec.outputPresent(out + i) ||
        (!optionalStates && !spec.inputPresent(in + 1 + i)) || !takesOptional(spec, in + 1 + i, place.count) ||
        !takesOptionalOutput(spec, out + i, place.count))
      return notTaken(spec, "states other than float32 of one size");
  }
  if (writesCopies(spec.attrs) && !takesOptionalOutput(spec, out + states + 1, place.count, low))
    return notTaken(spec, "copies of two types");
  return {};
}

// The parameters of the call: one, or those behind the shared inputs.
std::vector<Place> placesOf(const KernelSpec& spec, bool several, std::size_t inputs, std::size_t outputs) {
  if (!several) return {{0, 0, elementCount(spec.inputs[0].dims)}};
  std::vector<Place> places;
  for (std::size_t in = kSharedInputs; in < spec.inputs.size(); in += inputs)
    places.push_back({in, places.size() * outputs, elementCount(spec.inputs[in].dims)});
  return places;
}

// run(first, last) for groups of places that one launch takes.
template <typename Run>
Status inGroups(const std::vector<Place>& places, Run&& run) {
  for (std::size_t first = 0; first < places.size(); first += kMembers)
    SS_TRY(run(first, std::min(places.size(), first + kMembers)));
  return {};
}

template <DType kLow>
Result<std::unique_ptr<Kernel>> adamUpdate(const KernelSpec& spec) {
  const bool several = spec.op == "AdamUpdates", copies = writesCopies(spec.attrs);
  const std::size_t shared = several ? 0 : 4;
  if (spec.inputs.size() < 6 || !takesShared(spec, shared, DType::kF32, false) ||
      !takesShared(spec, shared + 1, DType::kI64, false) || !takesShared(spec, shared + 2, DType::kF32, true))
    return notTaken(spec, "a learning rate, step or scale of another type");
  const std::vector<Place> places = placesOf(spec, several, 4, copies ? 4 : 3);
  for (const Place& place : places) SS_TRY(checkPlace(spec, place, 2, kLow, false));
  const AdamParams params(spec.attrs);
  const AdamConstants constants{params.beta1, params.beta2, params.eps, params.weightDecay, params.decoupled};
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(gpu.run("adam: factors", gpu::function<adamFactors>, 1, 1, constants, gpu.in<float>(shared),
                   gpu.in<std::int64_t>(shared + 1), gpu.in<float>(shared + 2), gpu.room<float>(0, kAdamFactors)));
    return inGroups(places, [&](std::size_t first, std::size_t last) {
      AdamMembers<kLow> members;
      std::int64_t blocks = 0;
      for (std::size_t k = first; k < last; ++k) {
        const auto [in, out, count] = places[k];
        members.member[members.count++] = {gpu.in<float>(in),
                                           gpu.in<float>(in + 2),
                                           gpu.in<float>(in + 3),
                                           gradientOf<kLow>(gpu, in + 1),
                                           gpu.out<float>(out),
                                           gpu.out<float>(out + 1),
                                           gpu.out<float>(out + 2),
                                           copyOf<kLow>(gpu, copies, out + 3),
                                           count,
                                           blocks};
        blocks += blocksFor(count, kBlock);
      }
      return gpu.run("adam", gpu::function<adamElements<kLow>>, blocks, kThreads, members,
                     gpu.readRoom<float>(0, kAdamFactors));
    });
  };
  return makeLaunched("update", body, kAdamFactors * sizeof(float));
}

template <DType kLow>
Result<std::unique_ptr<Kernel>> sgdUpdate(const KernelSpec& spec) {
  const bool several = spec.op == "SgdUpdates", copies = writesCopies(spec.attrs);
  const std::size_t shared = several ? 0 : 3;
  if (spec.inputs.size() < 4 || !takesShared(spec, shared, DType::kF32, false) ||
      !takesShared(spec, shared + 1, DType::kF32, true) || !takesShared(spec, shared + 2, DType::kI64, true))
    return notTaken(spec, "a learning rate, scale or step of another type");
  const std::vector<Place> places = placesOf(spec, several, 3, copies ? 3 : 2);
  for (const Place& place : places) SS_TRY(checkPlace(spec, place, 1, kLow, true));
  const SgdParams params(spec.attrs);
  const SgdConstants constants{params.momentum, params.dampening, params.weightDecay, params.nesterov};
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(gpu.run("sgd: factors", gpu::function<sgdFactors>, 1, 1, constants, gpu.in<float>(shared),
                   gpu.in<float>(shared + 1), gpu.in<std::int64_t>(shared + 2), gpu.room<float>(0, kSgdFactors)));
    return inGroups(places, [&](std::size_t first, std::size_t last) {
      SgdMembers<kLow> members;
      std::int64_t blocks = 0;
      for (std::size_t k = first; k < last; ++k) {
        const auto [in, out, count] = places[k];
        members.member[members.count++] = {gpu.in<float>(in),
                                           gpu.in<float>(in + 2),
                                           gradientOf<kLow>(gpu, in + 1),
                                           gpu.out<float>(out),
                                           gpu.out<float>(out + 1),
                                           copyOf<kLow>(gpu, copies, out + 2),
                                           count,
                                           blocks};
        blocks += blocksFor(count, kBlock);
      }
      return gpu.run("sgd", gpu::function<sgdElements<kLow>>, blocks, kThreads, members,
                     gpu.readRoom<float>(0, kSgdFactors));
    });
  };
  return makeLaunched("update", body, kSgdFactors * sizeof(float));
}

template <DType kLow>
Result<std::unique_ptr<Kernel>> accumulate(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesGradient(spec, 1, elementCount(spec.inputs[0].dims), kLow) ||
      !takesShared(spec, 2, DType::kBool, false) || !takesOutput(spec, 0) || !takesOptionalOutput(spec, 1, 1))
    return notTaken(spec, "operands other than float32 and a flag");
  const std::int64_t count = elementCount(spec.inputs[0].dims), blocks = blocksFor(count, kBlock);
  if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "operands of other sizes");
  const bool squares = spec.outputPresent(1);
  const auto body = [=](Launcher& gpu) -> Status {
    const auto parts = squares ? gpu.room<double>(0, blocks) : Global<double>();
    SS_TRY(gpu.run("accumulate", gpu::function<accumulateElements<kLow>>, blocks, kThreads, gpu.in<float>(0),
                   gradientOf<kLow>(gpu, 1), gpu.in<std::uint8_t>(2), gpu.out<float>(0), parts, count));
    if (!squares) return {};
    return gpu.run("accumulate: squares", gpu::function<sumSquares>, 1, threadsForRow(blocks),
                   gpu.readRoom<double>(0, blocks), gpu.out<float>(1), blocks);
  };
  return makeLaunched("accumulate", body, squares ? static_cast<std::size_t>(blocks) * sizeof(double) : 0);
}

}  // namespace update_cu

Result<std::unique_ptr<Kernel>> makeAdamUpdate(const KernelSpec& spec) {
  return lowTypeOf(spec) == DType::kF16 ? adamUpdate<DType::kF16>(spec) : adamUpdate<DType::kBF16>(spec);
}
Result<std::unique_ptr<Kernel>> makeSgdUpdate(const KernelSpec& spec) {
  return lowTypeOf(spec) == DType::kF16 ? sgdUpdate<DType::kF16>(spec) : sgdUpdate<DType::kBF16>(spec);
}
// sum, gradient, first → sum', square_sum?
Result<std::unique_ptr<Kernel>> makeAccumulate(const KernelSpec& spec) {
  return lowTypeOf(spec) == DType::kF16 ? accumulate<DType::kF16>(spec) : accumulate<DType::kBF16>(spec);
}

}  // namespace stepscope::cuda
