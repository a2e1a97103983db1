// Softmax, LogSoftmax and their gradients: rows where the axis is the last, blocks of columns where it is not.
#include <array>
#include <limits>

#include "kernels/cpu/loops/broadcast.h"
#include "kernels/cpu/loops/row_sums.h"
#include "kernels/cpu/loops/rows.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {

namespace {

constexpr std::int64_t kSumBlock = 1024;  // floats that are summed in float before they join a double

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Four parts of a long row at once: one chain of comparisons would wait for each.
SS_INLINE float maxOf(const float* x, std::int64_t width) {
  const std::int64_t quarter = width < kSumBlock ? 0 : width / 64 * 16;
  float a = kLowest, b = kLowest, c = kLowest, d = kLowest;
  if (quarter > 0) {
#pragma omp simd reduction(max : a, b, c, d)
    for (std::int64_t j = 0; j < quarter; ++j) {
      a = x[j] > a ? x[j] : a;
      b = x[quarter + j] > b ? x[quarter + j] : b;
      c = x[2 * quarter + j] > c ? x[2 * quarter + j] : c;
      d = x[3 * quarter + j] > d ? x[3 * quarter + j] : d;
    }
  }
#pragma omp simd reduction(max : a)
  for (std::int64_t j = 4 * quarter; j < width; ++j) a = x[j] > a ? x[j] : a;
  a = b > a ? b : a;
  c = d > c ? d : c;
  return c > a ? c : a;
}
SS_CLONES float rowMax(const float* x, std::int64_t width) { return maxOf(x, width); }

SS_CLONES float sumOfPowers(const float* x, float max, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < width; ++j) sum += expOf(x[j] - max);
  return sum;
}

SS_INLINE float powersOf(const float* x, float max, float* y, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < width; ++j) {
    const float power = expOf(x[j] - max);
    y[j] = power;
    sum += power;
  }
  return sum;
}

}  // namespace

RowSum rowSum(const float* x, std::int64_t width) {
  const float max = rowMax(x, width);
  double sum = 0;
  for (std::int64_t at = 0; at < width; at += kSumBlock)
    sum += static_cast<double>(sumOfPowers(x + at, max, std::min(kSumBlock, width - at)));
  return {max, sum};
}

namespace {

constexpr std::int64_t kBlock = 64;  // columns that are worked on side by side

// The row whose largest element is known; a NaN, or no finite largest element, comes out as NaN through the differences.
SS_INLINE void softmaxBelow(const float* x, float max, float* y, std::int64_t width) {
  double sum = 0;
  for (std::int64_t at = 0; at < width; at += kSumBlock)
    sum += static_cast<double>(powersOf(x + at, max, y + at, std::min(kSumBlock, width - at)));
  const auto scale = static_cast<float>(1 / sum);
  for (std::int64_t j = 0; j < width; ++j) y[j] *= scale;
}

SS_CLONES void softmaxRow(const float* x, float* y, std::int64_t width) { softmaxBelow(x, maxOf(x, width), y, width); }

SS_CLONES void subtractRow(const float* x, float first, float second, float* y, std::int64_t width) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < width; ++j) y[j] = x[j] - first - second;
}

// A whole row and its mask, which has one element for all (step 0) or one for each (step 1).
SS_CLONES void addMaskRow(const float* x, const float* mask, std::int64_t step, float* y, std::int64_t width) {
  if (step == 0) {
    const float all = mask[0];
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = x[j] + all;
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = x[j] + mask[j];
  }
  softmaxBelow(y, maxOf(y, width), y, width);
}

SS_CLONES void fillMaskRow(const float* x, const std::uint8_t* mask, std::int64_t step, bool invert, float fill, float* y,
                           std::int64_t width) {
  if (step == 0) {
    const bool kept = (mask[0] != 0) != invert;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = kept ? x[j] : fill;
  } else {
    const std::int32_t dropped = invert ? 1 : 0;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) {
      const float value = x[j];
      y[j] = static_cast<std::int32_t>(mask[j] != 0) != dropped ? value : fill;
    }
  }
  softmaxBelow(y, maxOf(y, width), y, width);
}

void logSoftmaxRow(const float* x, float* y, std::int64_t width) {
  const RowSum s = rowSum(x, width);
  subtractRow(x, s.max, static_cast<float>(std::log(s.sum)), y, width);
}

SS_INLINE float dotOf(const float* a, const float* b, std::int64_t n) {
  SumLanes sums[kSumChains] = {};
  std::int64_t i = 0;
  for (; i + kSumChains * kSumLanes <= n; i += kSumChains * kSumLanes)
    for (std::int64_t chain = 0; chain < kSumChains; ++chain) {
      SumLanes left, right;
      loadLanes(a + i + chain * kSumLanes, left);
      loadLanes(b + i + chain * kSumLanes, right);
      sums[chain] += left * right;
    }
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum + sumOfLanes(sums);
}

SS_CLONES void softmaxGradRow(const float* dy, const float* y, float* dx, std::int64_t width) {
  double dot = 0;
  for (std::int64_t at = 0; at < width; at += kSumBlock)
    dot += static_cast<double>(dotOf(dy + at, y + at, std::min(kSumBlock, width - at)));
  const auto shift = static_cast<float>(dot);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < width; ++j) dx[j] = y[j] * (dy[j] - shift);
}

SS_CLONES void logSoftmaxGradRow(const float* dy, const float* y, float* dx, std::int64_t width) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < width; ++j) sum += static_cast<double>(dy[j]);
  const auto total = static_cast<float>(sum);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < width; ++j) dx[j] = dy[j] - expOf(y[j]) * total;
}

// n <= kBlock columns of a plane whose rows are `step` apart.
template <bool kLog>
SS_CLONES void softmaxColumns(const float* x, float* y, std::int64_t axis, std::int64_t step, std::int64_t n) {
  std::array<float, kBlock> max;
  std::array<double, kBlock> sum{};
  max.fill(-std::numeric_limits<float>::infinity());
  for (std::int64_t a = 0; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) max[j] = x[a * step + j] > max[j] ? x[a * step + j] : max[j];
  for (std::int64_t a = 0; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) sum[j] += static_cast<double>(expOf(x[a * step + j] - max[j]));
  for (std::int64_t j = 0; j < n; ++j) sum[j] = kLog ? std::log(sum[j]) : 1 / sum[j];
  for (std::int64_t a = 0; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) {
      const float distance = x[a * step + j] - max[j];
      y[a * step + j] = kLog ? distance - static_cast<float>(sum[j]) : expOf(distance) * static_cast<float>(sum[j]);
    }
}

template <bool kLog>
SS_CLONES void gradColumns(const float* dy, const float* y, float* dx, std::int64_t axis, std::int64_t step,
                           std::int64_t n) {
  std::array<double, kBlock> sum{};
  for (std::int64_t a = 0; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j)
      sum[j] += static_cast<double>(dy[a * step + j]) * (kLog ? 1.0 : static_cast<double>(y[a * step + j]));
  for (std::int64_t a = 0; a < axis; ++a)
    for (std::int64_t j = 0; j < n; ++j) {
      const float d = dy[a * step + j], v = y[a * step + j];
      dx[a * step + j] = kLog ? d - expOf(v) * static_cast<float>(sum[j]) : v * (d - static_cast<float>(sum[j]));
    }
}

struct Lines {
  std::int64_t outer = 1, axis = 1, inner = 1;
};

Result<Lines> linesOf(const KernelSpec& spec, const Dims& dims) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto at = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  return Lines{elementCount(all.first(at)), dims[at], elementCount(all.subspan(at + 1))};
}

// row(line) for every line of the last axis; columns(offset, n) for blocks of columns otherwise.
template <typename Row, typename Columns>
void walk(const Lines& lines, int threads, Row&& row, Columns&& columns) {
  if (lines.inner == 1) {
    parallelRows(lines.outer, lines.axis, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) row(r * lines.axis);
    });
    return;
  }
  const std::int64_t blocks = (lines.inner + kBlock - 1) / kBlock;
  parallelRows(lines.outer * blocks, lines.axis * std::min(kBlock, lines.inner), threads,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t at = i % blocks * kBlock;
                   columns(i / blocks * lines.axis * lines.inner + at, std::min(kBlock, lines.inner - at));
                 }
               });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeSoftmax(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.inputs[0].dims));
  return makeBodyKernel("vector rows",
                        [=, log = spec.op == "LogSoftmax", threads = spec.threads](const KernelCall& call) -> Status {
                          const float* x = input(call, 0);
                          float* y = output(call, 0);
                          walk(
                              lines, threads,
                              [&](std::int64_t at) {
                                log ? logSoftmaxRow(x + at, y + at, lines.axis) : softmaxRow(x + at, y + at, lines.axis);
                              },
                              [&](std::int64_t at, std::int64_t n) {
                                log ? softmaxColumns<true>(x + at, y + at, lines.axis, lines.inner, n)
                                    : softmaxColumns<false>(x + at, y + at, lines.axis, lines.inner, n);
                              });
                          return {};
                        });
}

Result<std::unique_ptr<Kernel>> makeMaskedSoftmax(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || (!takesInput(spec, 1) && !takesInput(spec, 1, DType::kBool)))
    return notTaken(spec, "elements other than float32");
  const Dims& dims = spec.inputs[0].dims;
  if (dims.empty()) return notTaken(spec, "a single number");
  SS_ASSIGN(const Broadcast broadcast, Broadcast::of(spec, dims, {&dims, &spec.inputs[1].dims}));
  const std::int64_t width = dims.back(), rows = elementCount(dims) / width;
  const bool bools = spec.inputs[1].dtype == DType::kBool, invert = spec.attrs.integer("invert", 0) != 0;
  const float fill = spec.attrs.real("fill", -std::numeric_limits<float>::infinity());
  return makeBodyKernel("vector rows", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* x = input(call, 0);
    float* y = output(call, 0);
    parallelRows(rows, width, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        // A run is a whole row: the mask's last axis is that of the scores, or has one element.
        broadcast.runs(row * width, (row + 1) * width, [&](const Broadcast::Run& run) {
          if (bools)
            fillMaskRow(x + run.out, input<std::uint8_t>(call, 1) + run.at[1], broadcast.step(1), invert, fill, y + run.out,
                        run.count);
          else
            addMaskRow(x + run.out, input(call, 1) + run.at[1], broadcast.step(1), y + run.out, run.count);
        });
      }
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makeSoftmaxGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  if (elementCount(spec.inputs[0].dims) != elementCount(spec.inputs[1].dims)) return notTaken(spec, "operands of two sizes");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.inputs[1].dims));
  return makeBodyKernel(
      "vector rows", [=, log = spec.op == "LogSoftmaxGrad", threads = spec.threads](const KernelCall& call) -> Status {
        const float *dy = input(call, 0), *y = input(call, 1);
        float* dx = output(call, 0);
        walk(
            lines, threads,
            [&](std::int64_t at) { (log ? logSoftmaxGradRow : softmaxGradRow)(dy + at, y + at, dx + at, lines.axis); },
            [&](std::int64_t at, std::int64_t n) {
              (log ? gradColumns<true> : gradColumns<false>)(dy + at, y + at, dx + at, lines.axis, lines.inner, n);
            });
        return {};
      });
}

}  // namespace stepscope::cpu
