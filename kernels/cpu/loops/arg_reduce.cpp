// ArgMax, ArgMin, Hardmax, the gradient of GlobalMaxPool, and CumSum: one line of the axis at a time, or columns side by
// side.
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cpu/loops/lines.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kColumns = 64,
                       kWideColumns = 512;  // the latter where a block's state is small enough for whole pages of memory

template <bool kMax>
SS_CLONES float bestOf(const float* x, std::int64_t count, int* nan) {
  float best = x[0];
  int bad = 0;
  if constexpr (kMax) {
#pragma omp simd reduction(max : best) reduction(| : bad)
    for (std::int64_t i = 0; i < count; ++i) {
      best = x[i] > best ? x[i] : best;
      bad |= static_cast<int>(x[i] != x[i]);
    }
  } else {
#pragma omp simd reduction(min : best) reduction(| : bad)
    for (std::int64_t i = 0; i < count; ++i) {
      best = x[i] < best ? x[i] : best;
      bad |= static_cast<int>(x[i] != x[i]);
    }
  }
  *nan = bad;
  return best;
}

// Where `wanted`, which is among them, stands first.
SS_CLONES std::int64_t firstOf(const float* x, std::int64_t count, float wanted) {
  constexpr std::int64_t kPart = 4096;
  for (std::int64_t at = 0;; at += kPart) {
    const auto n = static_cast<std::int32_t>(std::min(kPart, count - at));
    std::int32_t first = n;
#pragma omp simd reduction(min : first)
    for (std::int32_t i = 0; i < n; ++i) first = std::min(first, x[at + i] == wanted ? i : n);
    if (first < n) return at + first;
  }
}

// The first (or last) place of the extreme element; a NaN beats every number.
template <bool kMax>
std::int64_t argLine(const float* x, std::int64_t count, bool last) {
  int nan = 0;
  const float best = bestOf<kMax>(x, count, &nan);
  if (nan == 0 && !last) return firstOf(x, count, best);
  const auto wanted = [&](std::int64_t i) { return nan != 0 ? x[i] != x[i] : x[i] == best; };
  std::int64_t at = last ? count - 1 : 0;
  while (!wanted(at)) at += last ? -1 : 1;
  return at;
}

template <bool kMax>
SS_CLONES void argColumns(const float* x, std::int64_t* y, std::int64_t axis, std::int64_t step, std::int64_t n, bool last) {
  std::array<float, kColumns> best;
  std::array<std::int32_t, kColumns> place{};
  for (std::int64_t j = 0; j < n; ++j) best[j] = x[j];
  for (std::int64_t a = 1; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) {
      const float v = x[a * step + j], old = best[j];
      const bool nan = v != v, hadNan = old != old;
      const bool better =
          ((kMax ? v > old : v < old) && !hadNan) || (nan && !hadNan) || (last && (v == old || (nan && hadNan)));
      place[j] = better ? static_cast<std::int32_t>(a) : place[j];
      best[j] = better ? v : old;
    }
  for (std::int64_t j = 0; j < n; ++j) y[j] = place[j];
}

// As the reference kernel compares: a number is never larger than a NaN, nor the other way round.
std::int64_t hardLine(const float* x, std::int64_t count) {
  int nan = 0;
  return x[0] != x[0] ? 0 : firstOf(x, count, bestOf<true>(x, count, &nan));
}
SS_CLONES void hardColumns(const float* x, float* y, std::int64_t axis, std::int64_t step, std::int64_t n) {
  std::array<float, kWideColumns> best;
  std::array<std::int32_t, kWideColumns> place{};
  for (std::int64_t j = 0; j < n; ++j) best[j] = x[j];
  for (std::int64_t a = 1; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) {
      const float v = x[a * step + j], old = best[j];
      place[j] = v > old ? static_cast<std::int32_t>(a) : place[j];
      best[j] = v > old ? v : old;
    }
  for (std::int64_t a = 0; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) y[a * step + j] = place[j] == static_cast<std::int32_t>(a) ? 1.0F : 0.0F;
}

constexpr std::int64_t kBeside = 8, kStretch = 32;

// kLines lines that follow each other in memory, a stretch of each in turn: no sum waits for the one before it alone.
template <std::int64_t kLines>
void addLines(const float* x, float* y, std::int64_t axis, bool exclusive, bool reverse) {
  std::array<double, kLines> sums{};
  for (std::int64_t begin = 0; begin < axis; begin += kStretch)
    for (std::int64_t line = 0; line < kLines; ++line) {
      double sum = sums[static_cast<std::size_t>(line)];
      for (std::int64_t k = begin; k < std::min(axis, begin + kStretch); ++k) {
        const std::int64_t at = line * axis + (reverse ? axis - 1 - k : k);
        const double before = sum;
        sum += static_cast<double>(x[at]);
        y[at] = static_cast<float>(exclusive ? before : sum);
      }
      sums[static_cast<std::size_t>(line)] = sum;
    }
}

SS_CLONES void addColumns(double* sums, const float* x, float* y, bool exclusive, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const double before = sums[j];
    sums[j] += static_cast<double>(x[j]);
    y[j] = static_cast<float>(exclusive ? before : sums[j]);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeArgReduce(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0, DType::kI64)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.inputs[0].dims, spec.attrs.integer("axis", 0)));
  if (elementCount(spec.outputs[0].dims) != lines.outer * lines.inner || lines.axis > INT32_MAX)
    return notTaken(spec, "a result of another size");
  const bool last = spec.attrs.integer("select_last_index", 0) != 0, max = spec.op == "ArgMax";
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* x = input(call, 0);
    auto* y = output<std::int64_t>(call, 0);
    forEachBlock(lines, kColumns, threads, [&](int, std::int64_t outer, std::int64_t at, std::int64_t n) {
      const float* from = x + outer * lines.axis * lines.inner + at;
      if (lines.inner == 1)
        y[outer] = (max ? argLine<true> : argLine<false>)(from, lines.axis, last);
      else
        (max ? argColumns<true> : argColumns<false>)(from, y + outer * lines.inner + at, lines.axis, lines.inner, n, last);
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makeHardmax(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.inputs[0].dims, spec.attrs.integer("axis", -1)));
  if (elementCount(spec.outputs[0].dims) != lines.total() || lines.axis > INT32_MAX)
    return notTaken(spec, "a result of another size");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    forEachBlock(lines, kWideColumns, threads, [&](int, std::int64_t outer, std::int64_t at, std::int64_t n) {
      const float* x = input(call, 0) + outer * lines.axis * lines.inner + at;
      float* y = output(call, 0) + outer * lines.axis * lines.inner + at;
      if (lines.inner > 1) return hardColumns(x, y, lines.axis, lines.inner, n);
      const std::int64_t best = hardLine(x, lines.axis);  // y may be x
      std::fill_n(y, lines.axis, 0.0F);
      y[best] = 1;
    });
    return {};
  });
}

// dy, x → dx
Result<std::unique_ptr<Kernel>> makeGlobalMaxPoolGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0) || spec.inputs[1].dims.size() < 3)
    return notTaken(spec, "elements other than float32");
  const std::int64_t channels = spec.inputs[1].dims[0] * spec.inputs[1].dims[1],
                     size = elementCount(spec.inputs[1].dims) / channels;
  if (elementCount(spec.inputs[0].dims) != channels || elementCount(spec.outputs[0].dims) != channels * size)
    return notTaken(spec, "operands of other sizes");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float *dy = input(call, 0), *x = input(call, 1);
    float* dx = output(call, 0);
    parallelRows(channels, size, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t best = argLine<true>(x + c * size, size, false);
        std::fill_n(dx + c * size, size, 0.0F);
        dx[c * size + best] = dy[c];
      }
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makeCumSum(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs.size() != 2 || !takesScalar(spec, 1) ||
      !spec.inputs[1].constant.valid())
    return notTaken(spec, "elements other than float32, or an axis that is not constant");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.inputs[0].dims, elementAsInt(spec.inputs[1].constant.view(), 0)));
  const bool exclusive = spec.attrs.integer("exclusive", 0) != 0, reverse = spec.attrs.integer("reverse", 0) != 0;
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* x = input(call, 0);
    float* y = output(call, 0);
    if (lines.inner == 1) {
      parallelRows(lines.outer, lines.axis, threads, [&](std::int64_t begin, std::int64_t end) {
        for (; begin + kBeside <= end; begin += kBeside)
          addLines<kBeside>(x + begin * lines.axis, y + begin * lines.axis, lines.axis, exclusive, reverse);
        for (; begin < end; ++begin)
          addLines<1>(x + begin * lines.axis, y + begin * lines.axis, lines.axis, exclusive, reverse);
      });
      return {};
    }
    forEachBlock(lines, kWideColumns, threads, [&](int, std::int64_t outer, std::int64_t at, std::int64_t n) {
      std::array<double, kWideColumns> sums{};
      for (std::int64_t i = 0; i < lines.axis; ++i) {
        const std::int64_t row = (outer * lines.axis + (reverse ? lines.axis - 1 - i : i)) * lines.inner + at;
        addColumns(sums.data(), x + row, y + row, exclusive, n);
      }
    });
    return {};
  });
}

}  // namespace stepscope::cpu
