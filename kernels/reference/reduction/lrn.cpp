#include <algorithm>
#include <cmath>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// The window of channel c reaches from c - before to c + after, cut at the ends.
struct Window {
  Lines lines;  // axis = channels
  std::int64_t before = 0, after = 0;
  double alpha = 0, beta = 0, bias = 1;  // alpha already divided by the size

  // bias + alpha/size * sum of squares around channel c of the line x
  template <typename T>
  double scale(const T* x, std::int64_t c) const {
    double squares = 0;
    for (std::int64_t k = std::max<std::int64_t>(0, c - before); k <= std::min(lines.axis - 1, c + after); ++k) {
      const auto v = static_cast<double>(x[k * lines.inner]);
      squares += v * v;
    }
    return bias + alpha * squares;
  }
};

Result<Window> windowOf(const KernelSpec& spec, const TensorView& x) {
  const std::int64_t size = spec.attrs.integer("size", 0);
  if (size < 1) return invalid(spec.op + ": size " + std::to_string(size) + "; expected a positive number");
  Window w;
  SS_ASSIGN(w.lines, linesOf(spec, x.dims, 1));
  w.before = std::min((size - 1) / 2, w.lines.axis);
  w.after = std::min(size / 2, w.lines.axis);
  w.alpha = static_cast<double>(spec.attrs.real("alpha", 1e-4F)) / static_cast<double>(size);
  w.beta = spec.attrs.real("beta", 0.75F);
  w.bias = spec.attrs.real("bias", 1.0F);
  return w;
}

Status lrn(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Window w, windowOf(spec, x));
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    forEachLine(w.lines, [&](std::int64_t at) {
      const T* in = readAs<T>(x) + at;
      for (std::int64_t c = 0; c < w.lines.axis; ++c)
        writeAs<T>(call.outputs[0])[at + c * w.lines.inner] =
            static_cast<T>(static_cast<double>(in[c * w.lines.inner]) * std::pow(w.scale(in, c), -w.beta));
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

// dx[c] = dy[c] s[c]^-beta - 2 alpha/size beta x[c] * (sum over k whose window has c: dy[k] x[k] s[k]^(-beta-1))
Status lrnGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[1];
  SS_ASSIGN(const Window w, windowOf(spec, x));
  SS_TRY(expectElements(spec, "dy", call.inputs[0], x.elements()));
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    forEachLine(w.lines, [&](std::int64_t at) {
      const T* in = readAs<T>(x) + at;
      const T* dy = readAs<T>(call.inputs[0]) + at;
      const std::int64_t inner = w.lines.inner;
      for (std::int64_t c = 0; c < w.lines.axis; ++c) {
        double sum = 0;
        for (std::int64_t k = std::max<std::int64_t>(0, c - w.after); k <= std::min(w.lines.axis - 1, c + w.before); ++k)
          sum += static_cast<double>(dy[k * inner]) * static_cast<double>(in[k * inner]) *
                 std::pow(w.scale(in, k), -w.beta - 1);
        const double direct = static_cast<double>(dy[c * inner]) * std::pow(w.scale(in, c), -w.beta);
        writeAs<T>(call.outputs[0])[at + c * inner] =
            static_cast<T>(direct - 2 * w.alpha * w.beta * static_cast<double>(in[c * inner]) * sum);
      }
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kLrnEntries[] = {
    {"", "LRN", plain<lrn>},
    {"stepscope", "LRNGrad", plain<lrnGrad>},
};

}  // namespace

std::span<const KernelEntry> lrnKernels() { return kLrnEntries; }

}  // namespace stepscope::reference
