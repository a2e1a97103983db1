// ArgMax, ArgMin and CumSum: one line of the axis at a time, or columns side by side.
#include <array>
#include <cmath>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kColumns = 64;

struct Lines {
  std::int64_t outer = 1, axis = 1, inner = 1;
};

Result<Lines> linesOf(const KernelSpec& spec, const Dims& dims, std::int64_t given) {
  const auto axis = normalizeAxis(given, static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto at = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  return Lines{elementCount(all.first(at)), dims[at], elementCount(all.subspan(at + 1))};
}

// visit(offset of the first element, columns) for blocks of columns.
template <typename Visit>
void forEachBlock(const Lines& lines, int threads, Visit&& visit) {
  const std::int64_t blocks = (lines.inner + kColumns - 1) / kColumns;
  parallelRows(lines.outer * blocks, lines.axis * std::min(kColumns, lines.inner), threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i % blocks * kColumns;
      visit(i / blocks, at, std::min(kColumns, lines.inner - at));
    }
  });
}

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

// The first (or last) place of the extreme element; a NaN beats every number.
template <bool kMax>
std::int64_t argLine(const float* x, std::int64_t count, bool last) {
  int nan = 0;
  const float best = bestOf<kMax>(x, count, &nan);
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
      const bool better = ((kMax ? v > old : v < old) && !hadNan) || (nan && !hadNan) || (last && (v == old || (nan && hadNan)));
      place[j] = better ? static_cast<std::int32_t>(a) : place[j];
      best[j] = better ? v : old;
    }
  for (std::int64_t j = 0; j < n; ++j) y[j] = place[j];
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
  if (elementCount(spec.outputs[0].dims) != lines.outer * lines.inner || lines.axis > INT32_MAX) return notTaken(spec, "a result of another size");
  const bool last = spec.attrs.integer("select_last_index", 0) != 0, max = spec.op == "ArgMax";
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* x = input(call, 0);
    auto* y = output<std::int64_t>(call, 0);
    forEachBlock(lines, threads, [&](std::int64_t outer, std::int64_t at, std::int64_t n) {
      const float* from = x + outer * lines.axis * lines.inner + at;
      if (lines.inner == 1)
        y[outer] = (max ? argLine<true> : argLine<false>)(from, lines.axis, last);
      else
        (max ? argColumns<true> : argColumns<false>)(from, y + outer * lines.inner + at, lines.axis, lines.inner, n, last);
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makeCumSum(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs.size() != 2 || !takesScalar(spec, 1) || !spec.inputs[1].constant.valid())
    return notTaken(spec, "elements other than float32, or an axis that is not constant");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.inputs[0].dims, elementAsInt(spec.inputs[1].constant.view(), 0)));
  const bool exclusive = spec.attrs.integer("exclusive", 0) != 0, reverse = spec.attrs.integer("reverse", 0) != 0;
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    forEachBlock(lines, threads, [&](std::int64_t outer, std::int64_t at, std::int64_t n) {
      std::array<double, kColumns> sums{};
      for (std::int64_t i = 0; i < lines.axis; ++i) {
        const std::int64_t row = (outer * lines.axis + (reverse ? lines.axis - 1 - i : i)) * lines.inner + at;
        addColumns(sums.data(), input(call, 0) + row, output(call, 0) + row, exclusive, n);
      }
    });
    return {};
  });
}

}  // namespace stepscope::cpu
