#include <cmath>
#include <limits>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The largest element; NaN when there is one.
template <typename T>
double lineMax(const T* x, const Lines& lines) {
  double max = -kInfinity;
  for (std::int64_t a = 0; a < lines.axis; ++a) {
    const auto v = static_cast<double>(x[a * lines.inner]);
    if (v > max || v != v) max = v;
  }
  return max;
}

template <typename T>
double sumOfExponentials(const T* x, const Lines& lines, double max) {
  double sum = 0;
  for (std::int64_t a = 0; a < lines.axis; ++a) sum += std::exp(static_cast<double>(x[a * lines.inner]) - max);
  return sum;
}

template <typename T>
void softmaxLine(const T* x, T* y, const Lines& lines) {
  const double max = lineMax(x, lines);
  const double scale = 1 / sumOfExponentials(x, lines, max);
  for (std::int64_t a = 0; a < lines.axis; ++a)
    y[a * lines.inner] = static_cast<T>(std::exp(static_cast<double>(x[a * lines.inner]) - max) * scale);
}

template <typename T>
void logSoftmaxLine(const T* x, T* y, const Lines& lines) {
  const double max = lineMax(x, lines);
  const double logSum = std::log(sumOfExponentials(x, lines, max));
  for (std::int64_t a = 0; a < lines.axis; ++a)
    y[a * lines.inner] = static_cast<T>(static_cast<double>(x[a * lines.inner]) - max - logSum);
}

template <typename T>
void hardmaxLine(const T* x, T* y, const Lines& lines) {
  std::int64_t best = 0;
  for (std::int64_t a = 1; a < lines.axis; ++a)
    if (static_cast<double>(x[a * lines.inner]) > static_cast<double>(x[best * lines.inner])) best = a;
  for (std::int64_t a = 0; a < lines.axis; ++a) y[a * lines.inner] = static_cast<T>(a == best ? 1.0F : 0.0F);
}

template <typename T>
void softmaxGradLine(const T* dy, const T* y, T* dx, const Lines& lines) {
  double dot = 0;
  for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner)
    dot += static_cast<double>(dy[i]) * static_cast<double>(y[i]);
  for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner)
    dx[i] = static_cast<T>(static_cast<double>(y[i]) * (static_cast<double>(dy[i]) - dot));
}

template <typename T>
void logSoftmaxGradLine(const T* dy, const T* y, T* dx, const Lines& lines) {
  double sum = 0;
  for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner) sum += static_cast<double>(dy[i]);
  for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner)
    dx[i] = static_cast<T>(static_cast<double>(dy[i]) - std::exp(static_cast<double>(y[i])) * sum);
}

enum class Unary { kSoftmax, kLogSoftmax, kHardmax };

template <Unary kWhich>
Status unary(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, spec.attrs.integer("axis", -1)));
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* in = readAs<T>(x);
    T* out = writeAs<T>(call.outputs[0]);
    forEachLine(lines, [&](std::int64_t at) {
      if constexpr (kWhich == Unary::kSoftmax)
        softmaxLine(in + at, out + at, lines);
      else if constexpr (kWhich == Unary::kLogSoftmax)
        logSoftmaxLine(in + at, out + at, lines);
      else
        hardmaxLine(in + at, out + at, lines);
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

// The mask is applied into the output, whose lines are then normalised in place.
Status masked(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &mask = call.inputs[1];
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, -1));
  Dims strides(x.dims.size(), 0);
  const Dims own = rowMajorStrides(mask.dims);
  const std::size_t lead = x.dims.size() - mask.dims.size();
  for (std::size_t i = 0; i < mask.dims.size(); ++i) strides[lead + i] = mask.dims[i] == 1 ? 0 : own[i];
  const double fill = spec.attrs.real("fill", -std::numeric_limits<float>::infinity());
  const bool invert = spec.attrs.integer("invert", 0) != 0;
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* in = readAs<T>(x);
    T* out = writeAs<T>(call.outputs[0]);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      std::int64_t at = 0, rest = i;
      for (std::size_t axis = x.dims.size(); axis-- > 0; rest /= x.dims[axis]) at += rest % x.dims[axis] * strides[axis];
      if (mask.dtype == DType::kBool)
        out[i] = (static_cast<const bool*>(mask.data)[at] != invert) ? in[i] : static_cast<T>(fill);
      else
        out[i] = static_cast<T>(static_cast<double>(in[i]) + static_cast<double>(readAs<T>(mask)[at]));
    }
    forEachLine(lines, [&](std::int64_t at) { softmaxLine(static_cast<const T*>(out) + at, out + at, lines); });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

template <bool kLog>
Status gradient(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& dy = call.inputs[0];
  const TensorView& y = call.inputs[1];
  SS_ASSIGN(const Lines lines, linesOf(spec, y.dims, spec.attrs.integer("axis", -1)));
  SS_TRY(expectElements(spec, "dy", dy, y.elements()));
  const bool known = dispatchFloat(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    forEachLine(lines, [&](std::int64_t at) {
      if constexpr (kLog)
        logSoftmaxGradLine(readAs<T>(dy) + at, readAs<T>(y) + at, writeAs<T>(call.outputs[0]) + at, lines);
      else
        softmaxGradLine(readAs<T>(dy) + at, readAs<T>(y) + at, writeAs<T>(call.outputs[0]) + at, lines);
    });
  });
  if (!known) return badType(spec, y.dtype);
  return {};
}

constexpr KernelEntry kSoftmaxEntries[] = {
    {"", "Hardmax", plain<unary<Unary::kHardmax>>}, {"", "LogSoftmax", plain<unary<Unary::kLogSoftmax>>},
    {"", "Softmax", plain<unary<Unary::kSoftmax>>}, {"stepscope", "LogSoftmaxGrad", plain<gradient<true>>},
    {"stepscope", "MaskedSoftmax", plain<masked>},  {"stepscope", "SoftmaxGrad", plain<gradient<false>>},
};

}  // namespace

std::span<const KernelEntry> softmaxKernels() { return kSoftmaxEntries; }

}  // namespace stepscope::reference
