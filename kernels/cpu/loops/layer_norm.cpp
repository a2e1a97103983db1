// LayerNormalization, SimplifiedLayerNormalization (RMSNormalization) and their Skip forms: one pass over memory, a row at a
// time.
#include "kernels/cpu/loops/row_statistics.h"
#include "kernels/cpu/loops/row_sums.h"
#include "kernels/cpu/loops/summed_parts.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

// y = ((x - mean) - rest) * inverse * scale + bias: the mean in two parts, so that large means cost no digits.
SS_CLONES void normalise(const float* x, float mean, float rest, float inverse, const float* scale, const float* bias,
                         float* y, std::int64_t n) {
  if (bias != nullptr) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) y[j] = ((x[j] - mean) - rest) * inverse * scale[j] + bias[j];
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) y[j] = ((x[j] - mean) - rest) * inverse * scale[j];
  }
}

template <bool kCentered>
RowStatistics normRow(const float* x, const float* scale, const float* bias, float* y, std::int64_t width, double epsilon) {
  const RowStatistics s = rowStatistics(x, width, epsilon, kCentered);
  normalise(x, s.rough, static_cast<float>(s.rest), static_cast<float>(s.inverse), scale, bias, y, width);
  return s;
}

SS_CLONES void addRows(const float* a, const float* b, const float* c, float* y, std::int64_t width) {
  if (c != nullptr) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = a[j] + b[j] + c[j];
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = a[j] + b[j];
  }
}

// x as [rows, width], normalised from the attribute `axis` on.
struct Shape {
  std::int64_t rows = 0, width = 0;
};
Result<Shape> shapeOf(const KernelSpec& spec, const Dims& dims) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto at = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  return Shape{elementCount(all.first(at)), elementCount(all.subspan(at))};
}

template <bool kCentered>
Result<std::unique_ptr<Kernel>> makeNorm(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Shape shape, shapeOf(spec, spec.inputs[0].dims));
  const bool hasBias = kCentered && spec.inputPresent(2);
  if (elementCount(spec.inputs[1].dims) != shape.width || (hasBias && !takesOptional(spec, 2, shape.width)) ||
      !takesOptionalOutput(spec, 1, shape.rows) || (kCentered && !takesOptionalOutput(spec, 2, shape.rows)))
    return notTaken(spec, "parameters that repeat within the normalised axes");
  const double epsilon = static_cast<double>(spec.attrs.real("epsilon", 1e-5F));
  return makeBodyKernel("vector rows", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float *x = input(call, 0), *scale = input(call, 1), *bias = hasBias ? input(call, 2) : nullptr;
    float* y = output(call, 0);
    constexpr std::size_t kInverse = kCentered ? 2 : 1;
    float* mean = kCentered && call.outputPresent(1) ? output(call, 1) : nullptr;
    float* inverse = call.outputPresent(kInverse) ? output(call, kInverse) : nullptr;
    parallelRows(shape.rows, shape.width, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const RowStatistics s =
            normRow<kCentered>(x + row * shape.width, scale, bias, y + row * shape.width, shape.width, epsilon);
        if (mean != nullptr) mean[row] = static_cast<float>(s.mean());
        if (inverse != nullptr) inverse[row] = static_cast<float>(s.inverse);
      }
    });
    return {};
  });
}

// input, skip, gamma, beta?, bias? (without beta when not centred) → y, mean?, inv_std?, sum?
template <bool kCentered>
Result<std::unique_ptr<Kernel>> makeSkipNorm(const KernelSpec& spec) {
  constexpr std::size_t kBias = kCentered ? 4 : 3;
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesInput(spec, 2) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Shape shape, shapeOf(spec, spec.inputs[0].dims));
  const std::int64_t total = shape.rows * shape.width, skipTotal = elementCount(spec.inputs[1].dims);
  const bool hasBeta = kCentered && spec.inputPresent(3), hasBias = spec.inputPresent(kBias);
  if (total % skipTotal != 0 || skipTotal % shape.width != 0 || elementCount(spec.inputs[2].dims) != shape.width ||
      (hasBeta && !takesOptional(spec, 3, shape.width)) || !takesOptional(spec, kBias, shape.width) ||
      !takesOptionalOutput(spec, 1, shape.rows) || !takesOptionalOutput(spec, 2, shape.rows) ||
      !takesOptionalOutput(spec, 3, total))
    return notTaken(spec, "operands of other sizes");
  const double epsilon = static_cast<double>(spec.attrs.real("epsilon", 1e-12F));
  const std::size_t rowBytes = (static_cast<std::size_t>(shape.width) * sizeof(float) + 63) / 64 * 64;
  const Parts parts = partsOf(shape.rows, shape.width, spec.threads);
  const auto body = [=](const KernelCall& call) -> Status {
    const float *x = input(call, 0), *skip = input(call, 1), *gamma = input(call, 2),
                *beta = hasBeta ? input(call, 3) : nullptr;
    const float* bias = hasBias ? input(call, kBias) : nullptr;
    float* y = output(call, 0);
    float* mean = call.outputPresent(1) ? output(call, 1) : nullptr;
    float* inverse = call.outputPresent(2) ? output(call, 2) : nullptr;
    float* sums = call.outputPresent(3) ? output(call, 3) : nullptr;
    parallelParts(shape.rows, parts, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      auto* own = reinterpret_cast<float*>(call.workspace.data() + static_cast<std::size_t>(part) * rowBytes);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * shape.width;
        float* sum = sums != nullptr ? sums + at : own;
        addRows(x + at, skip + at % skipTotal, bias, sum, shape.width);
        const RowStatistics s = normRow<kCentered>(sum, gamma, beta, y + at, shape.width, epsilon);
        if (mean != nullptr) mean[row] = static_cast<float>(s.mean());
        if (inverse != nullptr) inverse[row] = static_cast<float>(s.inverse);
      }
    });
    return {};
  };
  return makeBodyKernel("vector rows", body, rowBytes * static_cast<std::size_t>(parts));
}

// --- gradient

struct Dots {
  float total = 0, dot = 0;  // of d = dy * scale, and of d * (x - mean)
};
template <bool kCentered>
SS_CLONES Dots dotsOf(const float* dy, const float* x, const float* scale, float mean, std::int64_t n) {
  SumLanes totals[kSumChains] = {}, dots[kSumChains] = {};
  std::int64_t i = 0;
  for (; i + kSumChains * kSumLanes <= n; i += kSumChains * kSumLanes)
    for (std::int64_t chain = 0; chain < kSumChains; ++chain) {
      const std::int64_t at = i + chain * kSumLanes;
      SumLanes d, factor, distance;
      loadLanes(dy + at, d);
      loadLanes(scale + at, factor);
      loadLanes(x + at, distance);
      d *= factor;
      if constexpr (kCentered) totals[chain] += d;
      dots[chain] += d * (distance - mean);
    }
  Dots sum;
  for (; i < n; ++i) {
    const float d = dy[i] * scale[i];
    if constexpr (kCentered) sum.total += d;
    sum.dot += d * (x[i] - mean);
  }
  return {sum.total + sumOfLanes(totals), sum.dot + sumOfLanes(dots)};
}

SS_CLONES void writeGradient(const float* dy, const float* x, const float* scale, float mean, float inverse, float shift,
                             float slope, float* dx, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) dx[j] = inverse * (dy[j] * scale[j] - shift - (x[j] - mean) * slope);
}

// dx = inverse * (d - (total + (x - mean) * dot * inverse^2) / width)
template <bool kCentered>
void inputGradient(const float* dy, const float* x, const float* scale, float mean, float inverse, float* dx,
                   std::int64_t width) {
  double total = 0, dot = 0;
  for (std::int64_t at = 0; at < width; at += kSumBlock) {
    const Dots dots = dotsOf<kCentered>(dy + at, x + at, scale + at, mean, std::min(kSumBlock, width - at));
    total += static_cast<double>(dots.total);
    dot += static_cast<double>(dots.dot);
  }
  const double i = static_cast<double>(inverse), count = static_cast<double>(width);
  writeGradient(dy, x, scale, mean, inverse, static_cast<float>(total / count), static_cast<float>(dot * i * i / count), dx,
                width);
}

// Rows are summed in float, kFlushRows at a time, and those sums in double.
constexpr std::int64_t kFlushRows = 16;

SS_CLONES void addParameters(const float* dy, const float* x, float mean, float inverse, float* dscale, float* dbias,
                             std::int64_t width) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < width; ++j) {
    dscale[j] += dy[j] * ((x[j] - mean) * inverse);
    dbias[j] += dy[j];
  }
}

SS_CLONES void flush(float* rows, double* sums, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    sums[j] += static_cast<double>(rows[j]);
    rows[j] = 0;
  }
}

SS_CLONES void sumParts(const double* sums, int parts, std::int64_t stride, float* y, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) {
    double sum = sums[j];
    for (int part = 1; part < parts; ++part) sum += sums[part * stride + j];
    y[j] = static_cast<float>(sum);
  }
}

// dy, x, scale, mean, inv_std (without mean when not centred) → dx?, dscale?, dbias?; dx may lie over dy or x.
template <bool kCentered>
Result<std::unique_ptr<Kernel>> makeNormGrad(const KernelSpec& spec) {
  constexpr std::size_t kInverse = kCentered ? 4 : 3;
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesInput(spec, 2))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Shape shape, shapeOf(spec, spec.inputs[1].dims));
  const std::int64_t total = shape.rows * shape.width;
  const auto given = [&](std::size_t i, std::int64_t elements) {
    return spec.inputPresent(i) && takesOptional(spec, i, elements);
  };
  if (!given(0, total) || !given(2, shape.width) || (kCentered && !given(3, shape.rows)) || !given(kInverse, shape.rows) ||
      !takesOptionalOutput(spec, 0, total) || !takesOptionalOutput(spec, 1, shape.width) ||
      (kCentered && !takesOptionalOutput(spec, 2, shape.width)))
    return notTaken(spec, "operands of other sizes");
  const bool parameters = spec.outputPresent(1) || (kCentered && spec.outputPresent(2));
  const Parts parts =
      parameters ? summedParts(shape.rows, shape.width, spec.threads) : partsOf(shape.rows, shape.width, spec.threads);
  const auto body = [=](const KernelCall& call) -> Status {
    const float *dy = input(call, 0), *x = input(call, 1), *scale = input(call, 2), *inverse = input(call, kInverse);
    const float* mean = kCentered ? input(call, 3) : nullptr;
    float* dx = call.outputPresent(0) ? output(call, 0) : nullptr;
    auto* sums = reinterpret_cast<double*>(call.workspace.data());
    const std::int64_t stride = 2 * shape.width;
    auto* pending = reinterpret_cast<float*>(sums + parts * stride);
    if (parameters) {
      std::fill_n(sums, parts * stride, 0.0);
      std::fill_n(pending, parts * stride, 0.0F);
    }
    parallelParts(shape.rows, parts, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      float* own = pending + part * stride;
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * shape.width;
        const float m = kCentered ? mean[row] : 0.0F;
        if (parameters) addParameters(dy + at, x + at, m, inverse[row], own, own + shape.width, shape.width);
        if (dx != nullptr) inputGradient<kCentered>(dy + at, x + at, scale, m, inverse[row], dx + at, shape.width);
        if (parameters && (row + 1 == end || (row + 1 - begin) % kFlushRows == 0)) flush(own, sums + part * stride, stride);
      }
    });
    if (call.outputPresent(1)) sumParts(sums, parts, stride, output(call, 1), shape.width);
    if (kCentered && call.outputPresent(2)) sumParts(sums + shape.width, parts, stride, output(call, 2), shape.width);
    return {};
  };
  return makeBodyKernel(
      "vector rows", body,
      parameters ? static_cast<std::size_t>(parts * 2 * shape.width) * (sizeof(double) + sizeof(float)) : 0,
      parameters && sumCutByThreads(shape.rows, shape.width)
          ? Determinism::perThread("the gradients of scale and bias are summed over the rows of each thread")
          : Determinism::fixed());
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeLayerNorm(const KernelSpec& spec) { return makeNorm<true>(spec); }
Result<std::unique_ptr<Kernel>> makeRmsNorm(const KernelSpec& spec) { return makeNorm<false>(spec); }
Result<std::unique_ptr<Kernel>> makeSkipLayerNorm(const KernelSpec& spec) { return makeSkipNorm<true>(spec); }
Result<std::unique_ptr<Kernel>> makeSkipRmsNorm(const KernelSpec& spec) { return makeSkipNorm<false>(spec); }
Result<std::unique_ptr<Kernel>> makeLayerNormGrad(const KernelSpec& spec) { return makeNormGrad<true>(spec); }
Result<std::unique_ptr<Kernel>> makeRmsNormGrad(const KernelSpec& spec) { return makeNormGrad<false>(spec); }

}  // namespace stepscope::cpu
