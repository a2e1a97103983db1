// Pooling in plain NC… layout: channels are independent, so they are split over the threads; inside a channel the window is
// clipped to the input once per output position and axis.
//
// oneDNN's max pooling keeps its winners in a private workspace, not as the int64 indices of ONNX; hence own loops.
#include <algorithm>
#include <array>

#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/window.h"

namespace stepscope::cpu {
namespace {

constexpr std::size_t kAxes = 3;

// A pooling with exactly three spatial axes; missing ones lead with extent 1.
struct Pool {
  std::array<WindowAxis, kAxes> axes;
  std::array<std::int64_t, kAxes> in{1, 1, 1}, out{1, 1, 1};
  std::int64_t channels = 0;
  bool countsPadding = false;
  int threads = 1;

  std::int64_t inSize() const { return in[0] * in[1] * in[2]; }
  std::int64_t outSize() const { return out[0] * out[1] * out[2]; }
};

// The taps of one axis at one output position that fall inside the input: first + i * dilation, i in [0, count).
struct Span {
  std::int64_t first = 0, count = 0, padded = 0;
};

Span spanAt(const WindowAxis& a, std::int64_t in, std::int64_t o) {
  const std::int64_t start = o * a.stride - a.padBegin;
  const std::int64_t skipped = start < 0 ? (-start + a.dilation - 1) / a.dilation : 0;
  Span span;
  span.first = start + skipped * a.dilation;
  const std::int64_t fits = span.first < in ? (in - span.first + a.dilation - 1) / a.dilation : 0;
  span.count = std::max<std::int64_t>(0, std::min(a.kernel - skipped, fits));
  span.padded = std::min(a.kernel, (in + a.padEnd - start + a.dilation - 1) / a.dilation);
  return span;
}

Result<Pool> poolOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y) {
  if (x.dtype != DType::kF32 || y.dtype != DType::kF32) return unsupported(spec.op + ": the fast kernel takes float32");
  if (x.dims.size() < 3 || x.dims.size() > 2 + kAxes || y.dims.size() != x.dims.size())
    return unsupported(spec.op + ": the fast kernel takes one to three spatial axes");
  if (elementCount(x.dims) == 0 || elementCount(y.dims) == 0) return unsupported(spec.op + ": an extent is 0; the reference kernel serves");
  if (spec.attrs.integer("storage_order", 0) != 0) return unsupported(spec.op + ": column-major indices are for the reference kernel");
  const std::size_t rank = x.dims.size() - 2;
  const Dims in(x.dims.begin() + 2, x.dims.end()), out(y.dims.begin() + 2, y.dims.end());
  SS_ASSIGN(Window window, parseWindow(spec.attrs, rank));
  for (std::size_t i = 0; i < rank; ++i) {
    SS_ASSIGN(const std::int64_t expected, windowOutput(window, i, in[i]));
    if (expected != out[i]) return invalid(spec.op + ": output " + dimsText(y.dims) + " does not follow from input " + dimsText(x.dims));
  }
  resolvePads(window, in, out);
  Pool p;
  for (std::size_t i = 0; i < rank; ++i) {
    p.axes[kAxes - rank + i] = window.axes[i];
    p.in[kAxes - rank + i] = in[i];
    p.out[kAxes - rank + i] = out[i];
  }
  p.channels = x.dims[0] * x.dims[1];
  p.countsPadding = spec.attrs.integer("count_include_pad", 0) != 0;
  p.threads = spec.threads;
  return p;
}

// body(output position, spans) for every output position of one channel.
template <typename Body>
void forEachWindow(const Pool& p, Body&& body) {
  std::int64_t o = 0;
  std::array<Span, kAxes> spans;
  for (std::int64_t i = 0; i < p.out[0]; ++i) {
    spans[0] = spanAt(p.axes[0], p.in[0], i);
    for (std::int64_t j = 0; j < p.out[1]; ++j) {
      spans[1] = spanAt(p.axes[1], p.in[1], j);
      for (std::int64_t k = 0; k < p.out[2]; ++k, ++o) {
        spans[2] = spanAt(p.axes[2], p.in[2], k);
        body(o, spans);
      }
    }
  }
}

// body(input position) for every tap of a window, row-major.
template <typename Body>
inline void forEachTap(const Pool& p, const std::array<Span, kAxes>& spans, Body&& body) {
  for (std::int64_t a = 0; a < spans[0].count; ++a) {
    const std::int64_t plane = (spans[0].first + a * p.axes[0].dilation) * p.in[1];
    for (std::int64_t b = 0; b < spans[1].count; ++b) {
      const std::int64_t row = (plane + spans[1].first + b * p.axes[1].dilation) * p.in[2] + spans[2].first;
      for (std::int64_t c = 0; c < spans[2].count; ++c) body(row + c * p.axes[2].dilation);
    }
  }
}

std::int64_t divisor(const Pool& p, const std::array<Span, kAxes>& spans) {
  if (p.countsPadding) return spans[0].padded * spans[1].padded * spans[2].padded;
  return spans[0].count * spans[1].count * spans[2].count;
}

class PoolKernel : public Kernel {
 public:
  explicit PoolKernel(const Pool& pool) : p_(pool) {}
  std::string implementation() const override { return "openmp pooling"; }

 protected:
  Pool p_;
};

class MaxPoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  Status run(const KernelCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    auto* indices = call.outputPresent(1) ? static_cast<std::int64_t*>(call.outputs[1].data) : nullptr;
    const std::int64_t inSize = p_.inSize(), outSize = p_.outSize();
#pragma omp parallel for schedule(static) num_threads(p_.threads)
    for (std::int64_t c = 0; c < p_.channels; ++c) {
      const float* from = x + c * inSize;
      forEachWindow(p_, [&](std::int64_t o, const std::array<Span, kAxes>& spans) {
        std::int64_t best = -1;
        float largest = -__builtin_inff();
        forEachTap(p_, spans, [&](std::int64_t i) {
          const float value = from[i];
          // The first of equals wins, and a NaN beats every number.
          if (best < 0 || value > largest || (value != value && largest == largest)) {
            largest = value;
            best = i;
          }
        });
        y[c * outSize + o] = largest;
        if (indices) indices[c * outSize + o] = best < 0 ? -1 : c * inSize + best;
      });
    }
    return {};
  }
};

class AveragePoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  Status run(const KernelCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    const std::int64_t inSize = p_.inSize(), outSize = p_.outSize();
#pragma omp parallel for schedule(static) num_threads(p_.threads)
    for (std::int64_t c = 0; c < p_.channels; ++c) {
      const float* from = x + c * inSize;
      forEachWindow(p_, [&](std::int64_t o, const std::array<Span, kAxes>& spans) {
        float sum = 0;
        forEachTap(p_, spans, [&](std::int64_t i) { sum += from[i]; });
        const std::int64_t size = divisor(p_, spans);
        y[c * outSize + o] = size == 0 ? 0 : sum / static_cast<float>(size);
      });
    }
    return {};
  }
};

class AveragePoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  Status run(const KernelCall& call) override {
    const auto* dy = static_cast<const float*>(call.inputs[0].data);
    auto* dx = static_cast<float*>(call.outputs[0].data);
    const std::int64_t inSize = p_.inSize(), outSize = p_.outSize();
#pragma omp parallel for schedule(static) num_threads(p_.threads)
    for (std::int64_t c = 0; c < p_.channels; ++c) {
      float* to = dx + c * inSize;
      std::fill_n(to, inSize, 0.0f);
      forEachWindow(p_, [&](std::int64_t o, const std::array<Span, kAxes>& spans) {
        const std::int64_t size = divisor(p_, spans);
        const float share = size == 0 ? 0 : dy[c * outSize + o] / static_cast<float>(size);
        forEachTap(p_, spans, [&](std::int64_t i) { to[i] += share; });
      });
    }
    return {};
  }
};

// Scatters dy to the winners. The indices of MaxPool stay within their channel, which makes channels independent.
class MaxPoolGradKernel final : public Kernel {
 public:
  MaxPoolGradKernel(std::int64_t channels, std::int64_t inSize, std::int64_t outSize, int threads)
      : channels_(channels), inSize_(inSize), outSize_(outSize), threads_(threads) {}
  Status run(const KernelCall& call) override {
    const auto* dy = static_cast<const float*>(call.inputs[0].data);
    const auto* indices = static_cast<const std::int64_t*>(call.inputs[1].data);
    auto* dx = static_cast<float*>(call.outputs[0].data);
    std::int64_t strays = 0;
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(+ : strays)
    for (std::int64_t c = 0; c < channels_; ++c) {
      float* to = dx + c * inSize_;
      std::fill_n(to, inSize_, 0.0f);
      for (std::int64_t o = c * outSize_; o < (c + 1) * outSize_; ++o) {
        const std::int64_t i = indices[o] - c * inSize_;
        if (i >= 0 && i < inSize_)
          to[i] += dy[o];
        else
          strays += indices[o] != -1;
      }
    }
    if (strays > 0)
      return invalid("MaxPoolGrad: " + std::to_string(strays) + " indices outside their channel; expected the indices of MaxPool");
    return {};
  }
  std::string implementation() const override { return "openmp scatter"; }

 private:
  std::int64_t channels_, inSize_, outSize_;
  int threads_;
};

class GlobalAveragePoolKernel final : public Kernel {
 public:
  GlobalAveragePoolKernel(std::int64_t channels, std::int64_t size, int threads) : channels_(channels), size_(size), threads_(threads) {}
  Status run(const KernelCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t c = 0; c < channels_; ++c) {
      const float* from = x + c * size_;
      // Sixteen partial sums: a fixed order that vectorises.
      std::array<float, 16> sums{};
      std::int64_t i = 0;
      for (; i + 16 <= size_; i += 16)
        for (std::size_t lane = 0; lane < 16; ++lane) sums[lane] += from[i + static_cast<std::int64_t>(lane)];
      double total = 0;
      for (; i < size_; ++i) total += from[i];
      for (const float sum : sums) total += sum;
      y[c] = static_cast<float>(total / static_cast<double>(size_));
    }
    return {};
  }
  std::string implementation() const override { return "openmp mean"; }

 private:
  std::int64_t channels_, size_;
  int threads_;
};

template <typename K>
Result<std::unique_ptr<Kernel>> makePool(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y) {
  SS_ASSIGN(const Pool pool, poolOf(spec, x, y));
  return std::unique_ptr<Kernel>(std::make_unique<K>(pool));
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeMaxPool(const KernelSpec& spec) {
  return makePool<MaxPoolKernel>(spec, spec.inputs[0], spec.outputs[0]);
}

Result<std::unique_ptr<Kernel>> makeAveragePool(const KernelSpec& spec) {
  return makePool<AveragePoolKernel>(spec, spec.inputs[0], spec.outputs[0]);
}

Result<std::unique_ptr<Kernel>> makeAveragePoolGrad(const KernelSpec& spec) {
  return makePool<AveragePoolGradKernel>(spec, spec.outputs[0], spec.inputs[0]);
}

Result<std::unique_ptr<Kernel>> makeMaxPoolGrad(const KernelSpec& spec) {
  const Dims &x = spec.outputs[0].dims, &y = spec.inputs[0].dims;
  if (spec.inputs[0].dtype != DType::kF32) return unsupported("MaxPoolGrad: the fast kernel takes float32");
  if (spec.attrs.integer("storage_order", 0) != 0) return unsupported("MaxPoolGrad: column-major indices are for the reference kernel");
  if (x.size() < 3 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1] || spec.inputs[1].dims != y)
    return unsupported("MaxPoolGrad: the fast kernel takes indices per channel");
  const std::int64_t channels = x[0] * x[1];
  if (channels == 0) return unsupported("MaxPoolGrad: an extent is 0; the reference kernel serves");
  return std::unique_ptr<Kernel>(
      std::make_unique<MaxPoolGradKernel>(channels, elementCount(x) / channels, elementCount(y) / channels, spec.threads));
}

Result<std::unique_ptr<Kernel>> makeGlobalAveragePool(const KernelSpec& spec) {
  const Dims& x = spec.inputs[0].dims;
  if (spec.inputs[0].dtype != DType::kF32) return unsupported("GlobalAveragePool: the fast kernel takes float32");
  if (x.size() < 2 || elementCount(x) == 0) return unsupported("GlobalAveragePool: an extent is 0; the reference kernel serves");
  const std::int64_t channels = x[0] * x[1];
  return std::unique_ptr<Kernel>(std::make_unique<GlobalAveragePoolKernel>(channels, elementCount(x) / channels, spec.threads));
}

}  // namespace stepscope::cpu
