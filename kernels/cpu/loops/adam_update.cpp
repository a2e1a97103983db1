#include <algorithm>
#include <cmath>

#include "kernels/cpu/loops/loops.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::cpu {
namespace {

// What is the same for all elements of one call.
struct Factors {
  double keep, decay;          // p *= keep; g += decay p
  double beta1, rest1, beta2, rest2;
  double scale, rate, root2, eps;  // rate = lr / correction1, root2 = 1 / sqrt(correction2)
};

SS_CLONES void adam(const Factors& f, const float* p, const float* g, const float* m, const float* v, float* np, float* nm, float* nv, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double old = p[i];
    const double gradient = g[i] * f.scale + f.decay * old;
    const double mean = f.beta1 * m[i] + f.rest1 * gradient, square = f.beta2 * v[i] + f.rest2 * gradient * gradient;
    np[i] = static_cast<float>(old * f.keep - f.rate * mean / (std::sqrt(square) * f.root2 + f.eps));
    nm[i] = static_cast<float>(mean);
    nv[i] = static_cast<float>(square);
  }
}

class AdamKernel final : public Kernel {
 public:
  explicit AdamKernel(const KernelSpec& spec) : params_(spec.attrs) {}

  Status run(const KernelCall& call) override {
    const double lr = elementAsDouble(call.inputs[4], 0), step = elementAsDouble(call.inputs[5], 0);
    Factors f{};
    f.keep = params_.decoupled ? 1 - lr * params_.weightDecay : 1;
    f.decay = params_.decoupled ? 0 : params_.weightDecay;
    f.beta1 = params_.beta1;
    f.rest1 = 1 - params_.beta1;
    f.beta2 = params_.beta2;
    f.rest2 = 1 - params_.beta2;
    f.scale = call.inputPresent(6) ? elementAsDouble(call.inputs[6], 0) : 1;
    f.rate = lr / (1 - std::pow(params_.beta1, step));
    f.root2 = 1 / std::sqrt(1 - std::pow(params_.beta2, step));
    f.eps = params_.eps;
    const std::int64_t n = call.inputs[0].elements(), part = kParallelElements, parts = (n + part - 1) / part;
    const auto in = [&](std::size_t i) { return static_cast<const float*>(call.inputs[i].data); };
    const auto out = [&](std::size_t i) { return static_cast<float*>(call.outputs[i].data); };
    const float *p = in(0), *g = in(1), *m = in(2), *v = in(3);
    float *np = out(0), *nm = out(1), *nv = out(2);
#pragma omp parallel for schedule(static) if (parts > 1)
    for (std::int64_t k = 0; k < parts; ++k) {
      const std::int64_t at = k * part;
      adam(f, p + at, g + at, m + at, v + at, np + at, nm + at, nv + at, std::min(part, n - at));
    }
    return {};
  }
  std::string implementation() const override { return "vector loop"; }

 private:
  AdamParams params_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeAdamUpdate(const KernelSpec& spec) {
  const auto refuse = [] { return unsupported("vector loop: takes float32 tensors of one shape"); };
  if (spec.inputs.size() < 6 || spec.outputs.size() != 3) return refuse();
  for (std::size_t i = 0; i < 4; ++i)
    if (spec.inputs[i].dtype != DType::kF32 || spec.inputs[i].dims != spec.inputs[0].dims) return refuse();
  for (const OperandSpec& output : spec.outputs)
    if (output.dtype != DType::kF32 || output.dims != spec.inputs[0].dims) return refuse();
  for (const std::size_t i : {std::size_t{4}, std::size_t{5}, std::size_t{6}})
    if (spec.inputPresent(i) ? elementCount(spec.inputs[i].dims) != 1 : i < 6) return refuse();
  return std::make_unique<AdamKernel>(spec);
}

}  // namespace stepscope::cpu
