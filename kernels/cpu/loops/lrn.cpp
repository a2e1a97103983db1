// LRN and its gradient: channels are walked one after another, with the positions of a block side by side.
#include <array>
#include <cmath>

#include "kernels/cpu/loops/lines.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kColumns = 512,
                       kGradColumns = 256;  // of the gradient, what is kept of all channels lies in the second-level cache

// The window of channel c reaches from c - before to c + after, cut at the ends.
struct Window {
  Lines lines;  // axis = channels
  std::int64_t before = 0, after = 0;
  float alpha = 0, beta = 0, bias = 1;  // alpha already divided by the size

  std::int64_t first(std::int64_t c, std::int64_t reach) const { return std::max<std::int64_t>(0, c - reach); }
  std::int64_t last(std::int64_t c, std::int64_t reach) const { return std::min(lines.axis - 1, c + reach); }
};

Result<Window> windowOf(const KernelSpec& spec, const OperandSpec& x) {
  const std::int64_t size = spec.attrs.integer("size", 0);
  if (size < 1 || x.dims.size() < 2) return notTaken(spec, "no window");
  Window w;
  SS_ASSIGN(w.lines, linesOf(spec, x.dims, 1));
  w.before = std::min((size - 1) / 2, w.lines.axis);
  w.after = std::min(size / 2, w.lines.axis);
  w.alpha = spec.attrs.real("alpha", 1e-4F) / static_cast<float>(size);
  w.beta = spec.attrs.real("beta", 0.75F);
  w.bias = spec.attrs.real("bias", 1.0F);
  return w;
}

// s^-beta; 3/4, which nearly all models have, by roots.
template <bool kThreeQuarters>
SS_INLINE float shrunk(float s, float beta) {
  if constexpr (kThreeQuarters) {
    const float inverse = 1.0F / std::sqrt(s);
    return inverse * std::sqrt(inverse);
  } else {
    return expOf(-beta * logOf(s));
  }
}

// scale = bias + alpha * sum of squares of the rows x, `step` apart
SS_CLONES void scaleRow(const float* x, std::int64_t rows, std::int64_t step, float alpha, float bias, float* scale,
                        std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) scale[i] = x[i] * x[i];
  for (std::int64_t k = 1; k < rows; ++k) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) scale[i] += x[k * step + i] * x[k * step + i];
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) scale[i] = bias + alpha * scale[i];
}

template <bool kThreeQuarters>
SS_CLONES void forwardRow(const float* x, const float* scale, float beta, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * shrunk<kThreeQuarters>(scale[i], beta);
}

// power = s^-beta and inner = dy x s^(-beta - 1), the first over the scale
template <bool kThreeQuarters>
SS_CLONES void preparedRow(const float* dy, const float* x, float* scale, float beta, float* inner, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float power = shrunk<kThreeQuarters>(scale[i], beta);
    inner[i] = dy[i] * x[i] * (power / scale[i]);
    scale[i] = power;
  }
}

// dx = dy power - factor x * sum of the rows `inner`
SS_CLONES void gradientRow(const float* dy, const float* x, const float* power, const float* inner, std::int64_t rows,
                           float factor, float* dx, std::int64_t n) {
  std::array<float, kGradColumns> sums{};
  for (std::int64_t k = 0; k < rows; ++k)
    for (std::int64_t i = 0; i < n; ++i) sums[i] += inner[k * kGradColumns + i];
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * power[i] - factor * x[i] * sums[i];
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeLrn(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) ||
      elementCount(spec.inputs[0].dims) != elementCount(spec.outputs[0].dims))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Window w, windowOf(spec, spec.inputs[0]));
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const std::int64_t step = w.lines.inner;
    forEachBlock(w.lines, kColumns, threads, [&](int, std::int64_t outer, std::int64_t at, std::int64_t n) {
      const float* x = input(call, 0) + outer * w.lines.axis * step + at;
      float* y = output(call, 0) + outer * w.lines.axis * step + at;
      std::array<float, kColumns> scale;
      for (std::int64_t c = 0; c < w.lines.axis; ++c) {
        const std::int64_t first = w.first(c, w.before), rows = w.last(c, w.after) - first + 1;
        scaleRow(x + first * step, rows, step, w.alpha, w.bias, scale.data(), n);
        (w.beta == 0.75F ? forwardRow<true> : forwardRow<false>)(x + c * step, scale.data(), w.beta, y + c * step, n);
      }
    });
    return {};
  });
}

// dy, x → dx = dy s^-beta - 2 alpha/size beta x * (sum of dy x s^(-beta - 1) over the channels whose window has this one)
Result<std::unique_ptr<Kernel>> makeLrnGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Window w, windowOf(spec, spec.inputs[1]));
  if (elementCount(spec.inputs[0].dims) != w.lines.total() || elementCount(spec.outputs[0].dims) != w.lines.total())
    return notTaken(spec, "operands of other sizes");
  const std::int64_t kept = w.lines.axis * kGradColumns;  // floats of each of two tables, per thread
  const auto body = [=, threads = spec.threads](const KernelCall& call) -> Status {
    const std::int64_t step = w.lines.inner;
    const float factor = 2 * w.alpha * w.beta;
    forEachBlock(w.lines, kGradColumns, threads, [&](int part, std::int64_t outer, std::int64_t at, std::int64_t n) {
      const std::int64_t offset = outer * w.lines.axis * step + at;
      const float *dy = input(call, 0) + offset, *x = input(call, 1) + offset;
      float* dx = output(call, 0) + offset;
      float *power = reinterpret_cast<float*>(call.workspace.data()) + part * 2 * kept, *inner = power + kept;
      for (std::int64_t c = 0; c < w.lines.axis; ++c) {
        const std::int64_t first = w.first(c, w.before), rows = w.last(c, w.after) - first + 1;
        scaleRow(x + first * step, rows, step, w.alpha, w.bias, power + c * kGradColumns, n);
        (w.beta == 0.75F ? preparedRow<true> : preparedRow<false>)(dy + c * step, x + c * step, power + c * kGradColumns,
                                                                   w.beta, inner + c * kGradColumns, n);
      }
      for (std::int64_t c = 0; c < w.lines.axis; ++c) {
        const std::int64_t first = w.first(c, w.after), rows = w.last(c, w.before) - first + 1;
        gradientRow(dy + c * step, x + c * step, power + c * kGradColumns, inner + first * kGradColumns, rows, factor,
                    dx + c * step, n);
      }
    });
    return {};
  };
  return makeBodyKernel("vector loop", body, static_cast<std::size_t>(spec.threads * 2 * kept) * sizeof(float));
}

}  // namespace stepscope::cpu
