#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// x is [rows, width]; scale and bias have a period that divides width (they are broadcast along leading normalised axes).
struct Rows {
  std::int64_t rows = 1, width = 1, period = 1;
};

Result<Rows> rowsOf(const KernelSpec& spec, const TensorView& x, const TensorView& scale) {
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, spec.attrs.integer("axis", -1)));
  Rows rows{lines.outer, lines.axis * lines.inner, scale.elements()};
  if (rows.width > 0 && (rows.period == 0 || rows.width % rows.period != 0))
    return invalid(fmt::format("{}: scale has shape {}; expected the normalised axes of {}", spec.op, dimsText(scale.dims),
                               dimsText(x.dims)));
  return rows;
}

struct Statistics {
  double mean = 0, inverse = 0;
};

// `value(j)` gives element j of the row; the mean is left out (zero) for RMS normalisation.
template <bool kCentered, typename Value>
Statistics statisticsOf(std::int64_t width, double epsilon, Value&& value) {
  Statistics s;
  const auto count = static_cast<double>(width);
  if constexpr (kCentered) {
    for (std::int64_t j = 0; j < width; ++j) s.mean += value(j);
    s.mean /= count;
  }
  double squares = 0;
  for (std::int64_t j = 0; j < width; ++j) {
    const double d = value(j) - s.mean;
    squares += d * d;
  }
  s.inverse = 1 / std::sqrt(squares / count + epsilon);
  return s;
}

template <typename V, typename Value>
void writeRow(const Rows& rows, const Statistics& s, Value&& value, const V* scale, const V* bias, std::int64_t biasPeriod,
              V* y) {
  for (std::int64_t j = 0, k = 0, b = 0; j < rows.width; ++j) {
    const double normal = (value(j) - s.mean) * s.inverse * static_cast<double>(scale[k]);
    y[j] = static_cast<V>(bias == nullptr ? normal : normal + static_cast<double>(bias[b]));
    if (++k == rows.period) k = 0;
    if (++b == biasPeriod) b = 0;
  }
}

void storeStatistics(const KernelCall& call, std::size_t meanOutput, std::size_t inverseOutput, std::int64_t row,
                     const Statistics& s) {
  if (meanOutput != 0 && call.outputPresent(meanOutput)) storeElement(call.outputs[meanOutput], row, s.mean);
  if (call.outputPresent(inverseOutput)) storeElement(call.outputs[inverseOutput], row, s.inverse);
}

// x, scale, bias? → y, mean?, inv_std? (centred) or y, inv_std?
template <bool kCentered>
Status layerNorm(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& scale = call.inputs[1];
  SS_ASSIGN(const Rows rows, rowsOf(spec, x, scale));
  const double epsilon = spec.attrs.real("epsilon", 1e-5F);
  const bool hasBias = kCentered && call.inputPresent(2);
  const std::int64_t biasPeriod = hasBias ? call.inputs[2].elements() : 1;
  if (hasBias && rows.width > 0 && (biasPeriod == 0 || rows.width % biasPeriod != 0))
    return invalid(fmt::format("{}: bias has shape {}; expected the normalised axes of {}", spec.op,
                               dimsText(call.inputs[2].dims), dimsText(x.dims)));
  bool known = false;
  dispatchFloat(x.dtype, [&](auto xTag) {
    known = dispatchFloat(scale.dtype, [&](auto scaleTag) {
      using T = decltype(xTag);
      using V = decltype(scaleTag);
      for (std::int64_t r = 0; r < rows.rows; ++r) {
        const T* row = readAs<T>(x) + r * rows.width;
        const auto value = [row](std::int64_t j) { return static_cast<double>(row[j]); };
        const Statistics s = statisticsOf<kCentered>(rows.width, epsilon, value);
        writeRow(rows, s, value, readAs<V>(scale), hasBias ? readAs<V>(call.inputs[2]) : nullptr, biasPeriod,
                 writeAs<V>(call.outputs[0]) + r * rows.width);
        storeStatistics(call, kCentered ? 1 : 0, kCentered ? 2 : 1, r, s);
      }
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

// input, skip, gamma, beta?, bias? (without beta when not centred) → y, mean?, inv_std?, sum?
template <bool kCentered>
Status skipLayerNorm(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& skip = call.inputs[1];
  const std::size_t biasAt = kCentered ? 4 : 3;
  const bool hasBeta = kCentered && call.inputPresent(3), hasBias = call.inputPresent(biasAt);
  SS_ASSIGN(const Rows rows, rowsOf(spec, x, call.inputs[2]));
  SS_TRY(expectElements(spec, "gamma", call.inputs[2], rows.width));
  if (hasBeta) SS_TRY(expectElements(spec, "beta", call.inputs[3], rows.width));
  if (hasBias) SS_TRY(expectElements(spec, "bias", call.inputs[biasAt], rows.width));
  const std::int64_t total = x.elements(), skipTotal = skip.elements();
  if (total == 0) return {};
  if (skipTotal == 0 || total % skipTotal != 0 || skipTotal % rows.width != 0)
    return invalid(fmt::format("{}: skip has shape {}; expected one that broadcasts to {}", spec.op, dimsText(skip.dims),
                               dimsText(x.dims)));
  const double epsilon = spec.attrs.real("epsilon", 1e-12F);
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* bias = hasBias ? readAs<T>(call.inputs[biasAt]) : nullptr;
    T* sum = call.outputPresent(3) ? writeAs<T>(call.outputs[3]) : nullptr;
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const T* row = readAs<T>(x) + r * rows.width;
      const T* skipRow = readAs<T>(skip) + r * rows.width % skipTotal;
      const auto value = [&](std::int64_t j) {
        const double v = static_cast<double>(row[j]) + static_cast<double>(skipRow[j]);
        return bias == nullptr ? v : v + static_cast<double>(bias[j]);
      };
      const Statistics s = statisticsOf<kCentered>(rows.width, epsilon, value);
      if (sum != nullptr)
        for (std::int64_t j = 0; j < rows.width; ++j) sum[r * rows.width + j] = static_cast<T>(value(j));
      writeRow(rows, s, value, readAs<T>(call.inputs[2]), hasBeta ? readAs<T>(call.inputs[3]) : nullptr, rows.width,
               writeAs<T>(call.outputs[0]) + r * rows.width);
      storeStatistics(call, 1, 2, r, s);
    }
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

// dscale = sum over rows of dy * xhat, dbias = sum over rows of dy; either may be null.
template <bool kCentered, typename T, typename V>
void parameterGradients(const Rows& rows, const V* dy, const T* x, const TensorView* mean, const TensorView& inverse,
                        V* dscale, V* dbias) {
  for (std::int64_t begin = 0; begin < rows.period; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, rows.period - begin);
    std::array<double, kBlock> scaleSum{}, biasSum{};
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const double m = kCentered ? elementAsDouble(*mean, r) : 0, inv = elementAsDouble(inverse, r);
      for (std::int64_t at = r * rows.width + begin; at < (r + 1) * rows.width; at += rows.period)
        for (std::int64_t j = 0; j < n; ++j) {
          const auto d = static_cast<double>(dy[at + j]);
          scaleSum[static_cast<std::size_t>(j)] += d * (static_cast<double>(x[at + j]) - m) * inv;
          biasSum[static_cast<std::size_t>(j)] += d;
        }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      if (dscale != nullptr) dscale[begin + j] = static_cast<V>(scaleSum[static_cast<std::size_t>(j)]);
      if (dbias != nullptr) dbias[begin + j] = static_cast<V>(biasSum[static_cast<std::size_t>(j)]);
    }
  }
}

template <bool kCentered, typename T, typename V>
void inputGradient(const Rows& rows, const V* dy, const T* x, const V* scale, const TensorView* mean,
                   const TensorView& inverse, T* dx) {
  const auto count = static_cast<double>(rows.width);
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const double m = kCentered ? elementAsDouble(*mean, r) : 0, inv = elementAsDouble(inverse, r);
    const std::int64_t at = r * rows.width;
    double sum = 0, dot = 0;
    for (std::int64_t j = 0, k = 0; j < rows.width; ++j) {
      const double d = static_cast<double>(dy[at + j]) * static_cast<double>(scale[k]);
      sum += d;
      dot += d * (static_cast<double>(x[at + j]) - m) * inv;
      if (++k == rows.period) k = 0;
    }
    if constexpr (!kCentered) sum = 0;
    for (std::int64_t j = 0, k = 0; j < rows.width; ++j) {
      const double d = static_cast<double>(dy[at + j]) * static_cast<double>(scale[k]);
      const double normal = (static_cast<double>(x[at + j]) - m) * inv;
      dx[at + j] = static_cast<T>(inv * (d - (sum + normal * dot) / count));
      if (++k == rows.period) k = 0;
    }
  }
}

// dy, x, scale, mean, inv_std (without mean when not centred) → dx?, dscale?, dbias? (no dbias when not centred)
template <bool kCentered>
Status layerNormGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& dy = call.inputs[0];
  const TensorView& x = call.inputs[1];
  const TensorView& scale = call.inputs[2];
  const TensorView* mean = kCentered ? &call.inputs[3] : nullptr;
  const TensorView& inverse = call.inputs[kCentered ? 4 : 3];
  SS_ASSIGN(const Rows rows, rowsOf(spec, x, scale));
  SS_TRY(expectElements(spec, "dy", dy, x.elements()));
  SS_TRY(expectElements(spec, "inv_std", inverse, rows.rows));
  if (kCentered) SS_TRY(expectElements(spec, "mean", *mean, rows.rows));
  bool known = false;
  dispatchFloat(x.dtype, [&](auto xTag) {
    known = dispatchFloat(scale.dtype, [&](auto scaleTag) {
      using T = decltype(xTag);
      using V = decltype(scaleTag);
      V* dscale = call.outputPresent(1) ? writeAs<V>(call.outputs[1]) : nullptr;
      V* dbias = kCentered && call.outputPresent(2) ? writeAs<V>(call.outputs[2]) : nullptr;
      // Before dx, which may take over the memory of dy or x.
      if (dscale != nullptr || dbias != nullptr)
        parameterGradients<kCentered>(rows, readAs<V>(dy), readAs<T>(x), mean, inverse, dscale, dbias);
      if (call.outputPresent(0))
        inputGradient<kCentered>(rows, readAs<V>(dy), readAs<T>(x), readAs<V>(scale), mean, inverse,
                                 writeAs<T>(call.outputs[0]));
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kLayerNormEntries[] = {
    {"", "LayerNormalization", plain<layerNorm<true>>},
    {"", "RMSNormalization", plain<layerNorm<false>>},
    {"", "SimplifiedLayerNormalization", plain<layerNorm<false>>},
    {"com.microsoft", "SimplifiedLayerNormalization", plain<layerNorm<false>>},
    {"com.microsoft", "SkipLayerNormalization", plain<skipLayerNorm<true>>},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", plain<skipLayerNorm<false>>},
    {"stepscope", "LayerNormalizationGrad", plain<layerNormGrad<true>>},
    {"stepscope", "SimplifiedLayerNormalizationGrad", plain<layerNormGrad<false>>},
};

}  // namespace

std::span<const KernelEntry> layerNormKernels() { return kLayerNormEntries; }

}  // namespace stepscope::reference
