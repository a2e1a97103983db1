// LpPool of the first and second power, and its gradient; the window of GlobalLpPool's is the whole plane. Rows of results
// at a time.
#include <cmath>

#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/linear/pool.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

// What follows is compiled for strides 1 and 2 of x and (0) for any.
template <int kPower, int kStride>
SS_CLONES void addRow(const float* x, std::int64_t stride, float* y, std::int64_t n) {
  if (kStride != 0) stride = kStride;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] += kPower == 1 ? std::fabs(x[i * stride]) : x[i * stride] * x[i * stride];
}

SS_CLONES void rootRow(float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::sqrt(y[i]);
}

// What an element of the window is multiplied with, or its sign: dy / y, or dy; nothing where all are zero.
template <int kPower>
SS_CLONES void shareRow(const float* dy, const float* y, float* share, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) share[i] = y[i] == 0 ? 0 : kPower == 1 ? dy[i] : dy[i] / y[i];
}

template <int kPower, int kStride, int kShares>
SS_CLONES void gradientRow(const float* x, std::int64_t stride, const float* share, float* dx, std::int64_t n) {
  if (kStride != 0) stride = kStride;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i * stride], s = share[i * kShares], slope = v < 0 ? -s : v == 0 ? 0 : s;
    dx[i * stride] += kPower == 1 ? slope : s * v;
  }
}

template <int kPower>
void forward(const Pool& p, const float* x, float* y) {
  const std::int64_t stride = p.axes[2].stride;
  const auto add = stride == 1 ? addRow<kPower, 1> : stride == 2 ? addRow<kPower, 2> : addRow<kPower, 0>;
  std::fill_n(y, p.outSize(), 0.0F);
  forEachTapRow(p, [&](std::int64_t, std::int64_t o, std::int64_t i, std::int64_t n) { add(x + i, stride, y + o, n); });
  if (kPower == 2) rootRow(y, p.outSize());
}

template <int kPower>
void backward(const Pool& p, const float* dy, const float* x, const float* y, float* share, float* dx) {
  const std::int64_t stride = p.axes[2].stride, inSize = p.inSize();
  shareRow<kPower>(dy, y, share, p.outSize());
  std::fill_n(dx, inSize, 0.0F);
  if (p.outSize() == 1 && p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel == inSize)
    return gradientRow<kPower, 1, 0>(x, 1, share, dx, inSize);
  const auto add = stride == 1   ? gradientRow<kPower, 1, 1>
                   : stride == 2 ? gradientRow<kPower, 2, 1>
                                 : gradientRow<kPower, 0, 1>;
  forEachTapRow(
      p, [&](std::int64_t, std::int64_t o, std::int64_t i, std::int64_t n) { add(x + i, stride, share + o, dx + i, n); });
}

std::int64_t taps(const Pool& p) { return p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel; }

// Errors (kUnsupported): other powers.
Result<bool> squares(const KernelSpec& spec) {
  const std::int64_t power = spec.attrs.integer("p", 2);
  if (power != 1 && power != 2) return notTaken(spec, "other powers than 1 and 2");
  return power == 2;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeLpPool(const KernelSpec& spec) {
  SS_ASSIGN(const bool square, squares(spec));
  SS_ASSIGN(const Pool p, poolOf(spec, spec.inputs[0], spec.outputs[0]));
  return makeBodyKernel("pooled rows", [=](const KernelCall& call) -> Status {
    parallelRows(p.channels, p.outSize() * taps(p), p.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c)
        (square ? forward<2> : forward<1>)(p, input(call, 0) + c * p.inSize(), output(call, 0) + c * p.outSize());
    });
    return {};
  });
}

// dy, x, y → dx
Result<std::unique_ptr<Kernel>> makeLpPoolGrad(const KernelSpec& spec) {
  SS_ASSIGN(const bool square, squares(spec));
  KernelSpec local = spec;
  const Dims& x = spec.inputs[1].dims;
  if (!spec.attrs.has("kernel_shape") && x.size() > 2)
    local.attrs.set("kernel_shape", std::vector<std::int64_t>(x.begin() + 2, x.end()));
  SS_ASSIGN(const Pool p, poolOf(local, spec.inputs[1], spec.inputs[0]));
  if (!takesInput(spec, 2) || spec.inputs[2].dims != spec.inputs[0].dims) return notTaken(spec, "results of another size");
  const auto body = [=](const KernelCall& call) -> Status {
    auto* shares = reinterpret_cast<float*>(call.workspace.data());
    parallelParts(p.channels, partsOf(p.channels, p.outSize() * taps(p), p.threads), 1,
                  [&](int part, std::int64_t begin, std::int64_t end) {
                    for (std::int64_t c = begin; c < end; ++c)
                      (square ? backward<2> : backward<1>)(p, input(call, 0) + c * p.outSize(),
                                                           input(call, 1) + c * p.inSize(), input(call, 2) + c * p.outSize(),
                                                           shares + part * p.outSize(), output(call, 0) + c * p.inSize());
                  });
    return {};
  };
  return makeBodyKernel("pooled rows", body, static_cast<std::size_t>(p.threads * p.outSize()) * sizeof(float));
}

}  // namespace stepscope::cpu
