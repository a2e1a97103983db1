// Pooling: channels are independent, so they are split over the threads, one by one in plain layout, sixteen side by side in
// nChw16c. Inside a channel the window is clipped to the input once per output position and axis.
//
// oneDNN's max pooling keeps its winners in a private workspace, not as the int64 indices of ONNX; hence own loops.
#include "kernels/cpu/linear/pool.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/channels/lanes.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/threads.h"

namespace stepscope::cpu {

Result<Pool> poolOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y) {
  if (x.dtype != DType::kF32 || y.dtype != DType::kF32) return unsupported(spec.op + ": the fast kernel takes float32");
  if (x.dims.size() < 3 || x.dims.size() > 2 + kAxes || y.dims.size() != x.dims.size())
    return unsupported(spec.op + ": the fast kernel takes one to three spatial axes");
  if (elementCount(x.dims) == 0 || elementCount(y.dims) == 0)
    return unsupported(spec.op + ": an extent is 0; falls back to the reference kernel");
  if (spec.attrs.integer("storage_order", 0) != 0)
    return unsupported(spec.op + ": column-major indices are for the reference kernel");
  const std::size_t rank = x.dims.size() - 2;
  const Dims in(x.dims.begin() + 2, x.dims.end()), out(y.dims.begin() + 2, y.dims.end());
  SS_ASSIGN(Window window, parseWindow(spec.attrs, rank));
  for (std::size_t i = 0; i < rank; ++i) {
    SS_ASSIGN(const std::int64_t expected, windowOutput(window, i, in[i]));
    if (expected != out[i])
      return invalid(spec.op + ": output " + dimsText(y.dims) + " does not follow from input " + dimsText(x.dims));
  }
  resolvePads(window, in, out);
  Pool p;
  for (std::size_t i = 0; i < rank; ++i) {
    p.axes[kAxes - rank + i] = window.axes[i];
    p.in[kAxes - rank + i] = in[i];
    p.out[kAxes - rank + i] = out[i];
  }
  p.channels = x.dims[0] * x.dims[1];
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands)
      if (operand.present() && operand.dims.size() == x.dims.size() && operand.layout != x.layout)
        return unsupported(spec.op + ": operands in different layouts");
  p.lanes = x.layout == Layout::kPlain ? 1 : kLanes;
  if (p.lanes > 1 && p.inSize() >= std::int64_t{1} << 31)
    return unsupported(spec.op + ": more positions than 31 bits count");
  p.countsPadding = spec.attrs.integer("count_include_pad", 0) != 0;
  std::int64_t taps = 1;
  for (std::size_t i = 0; i < rank; ++i) taps *= std::min(window.axes[i].kernel, in[i]);
  p.threads = threadsForElements(elementCount(x.dims) + elementCount(y.dims) * taps, spec.threads);
  return p;
}

namespace {

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

// body(output position, spans) for every output position of one channel. Inlined, so that it is compiled for the instruction
// set of the caller.
template <typename Body>
SS_INLINE void forEachWindow(const Pool& p, Body&& body) {
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

// --- sixteen channels side by side: x [in, 16], y [out, 16]

SS_LANE_CLONES void max16(const Pool& p, const float* x, float* y, std::int64_t* indices, std::int64_t channel) {
  const std::int64_t inSize = p.inSize();
  forEachWindow(
      p, [&](std::int64_t o, const std::array<Span, kAxes>& spans) __attribute__((always_inline)) {
        // Lane by lane, as a loop that is asked to become vectors: the compiler peels it into scalars else, and comparisons
        // of vector types too.
        alignas(64) float largest[kLanes];
        alignas(64) int best[kLanes];
        const bool any = spans[0].count * spans[1].count * spans[2].count > 0;
        const std::int64_t first = (spans[0].first * p.in[1] + spans[1].first) * p.in[2] + spans[2].first;
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          largest[lane] = any ? x[first * kLanes + lane] : -__builtin_inff();
          best[lane] = any ? static_cast<int>(first) : -1;
        }
        for (std::int64_t a = 0; a < spans[0].count; ++a)
          for (std::int64_t b = 0; b < spans[1].count; ++b)
            for (std::int64_t c = 0; c < spans[2].count; ++c) {
              const std::int64_t at =
                  ((spans[0].first + a * p.axes[0].dilation) * p.in[1] + spans[1].first + b * p.axes[1].dilation) * p.in[2] +
                  spans[2].first + c * p.axes[2].dilation;
              const float* from = x + at * kLanes;
              const int position = static_cast<int>(at);
#pragma omp simd
              for (std::int64_t lane = 0; lane < kLanes; ++lane) {
                const float value = from[lane], old = largest[lane];
                // The first of equals wins, and a NaN beats every number.
                const bool wins = !(value <= old) & (old == old);
                largest[lane] = wins ? value : old;
                best[lane] = wins ? position : best[lane];
              }
            }
        for (std::int64_t lane = 0; lane < kLanes; ++lane) y[o * kLanes + lane] = largest[lane];
        if (indices)
          for (std::int64_t lane = 0; lane < kLanes; ++lane)
            indices[o * kLanes + lane] = best[lane] < 0 ? -1 : (channel + lane) * inSize + best[lane];
      });
}

SS_LANE_CLONES void average16(const Pool& p, const float* x, float* y) {
  forEachWindow(
      p, [&](std::int64_t o, const std::array<Span, kAxes>& spans) __attribute__((always_inline)) {
        Floats sum{};
        for (std::int64_t a = 0; a < spans[0].count; ++a)
          for (std::int64_t b = 0; b < spans[1].count; ++b)
            for (std::int64_t c = 0; c < spans[2].count; ++c) {
              const std::int64_t at =
                  ((spans[0].first + a * p.axes[0].dilation) * p.in[1] + spans[1].first + b * p.axes[1].dilation) * p.in[2] +
                  spans[2].first + c * p.axes[2].dilation;
              Floats value;
              load(x + at * kLanes, value);
              sum += value;
            }
        const std::int64_t size = divisor(p, spans);
        store(size == 0 ? Floats{} : sum / static_cast<float>(size), y + o * kLanes);
      });
}

SS_LANE_CLONES void averageGrad16(const Pool& p, const float* dy, float* dx) {
  forEachWindow(
      p, [&](std::int64_t o, const std::array<Span, kAxes>& spans) __attribute__((always_inline)) {
        const std::int64_t size = divisor(p, spans);
        Floats share;
        load(dy + o * kLanes, share);
        share = size == 0 ? Floats{} : share / static_cast<float>(size);
        for (std::int64_t a = 0; a < spans[0].count; ++a)
          for (std::int64_t b = 0; b < spans[1].count; ++b)
            for (std::int64_t c = 0; c < spans[2].count; ++c) {
              const std::int64_t at =
                  ((spans[0].first + a * p.axes[0].dilation) * p.in[1] + spans[1].first + b * p.axes[1].dilation) * p.in[2] +
                  spans[2].first + c * p.axes[2].dilation;
              Floats value;
              load(dx + at * kLanes, value);
              value += share;
              store(value, dx + at * kLanes);
            }
      });
}

SS_LANE_CLONES void mean16(const float* x, float* y, std::int64_t size) {
  HalfDoubles s0{}, s1{};
  for (std::int64_t i = 0; i < size; ++i) {
    Floats value;
    HalfDoubles low, high;
    load(x + i * kLanes, value);
    widen(value, low, high);
    s0 += low;
    s1 += high;
  }
  for (int lane = 0; lane < 8; ++lane) {
    y[lane] = static_cast<float>(s0[lane] / static_cast<double>(size));
    y[lane + 8] = static_cast<float>(s1[lane] / static_cast<double>(size));
  }
}

class PoolKernel : public Kernel {
 public:
  explicit PoolKernel(const Pool& pool) : p_(pool) {}
  std::string implementation() const override { return p_.lanes == 1 ? "openmp pooling" : "pooling of 16 channels"; }
  Determinism determinism() const override { return Determinism::fixed(); }

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
    if (p_.lanes > 1) {
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t c = 0; c < p_.channels; c += kLanes)
        max16(p_, x + c * inSize, y + c * outSize, indices ? indices + c * outSize : nullptr, c);
      return {};
    }
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
    if (p_.lanes > 1) {
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t c = 0; c < p_.channels; c += kLanes) average16(p_, x + c * inSize, y + c * outSize);
      return {};
    }
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
    for (std::int64_t c = 0; c < p_.channels; c += p_.lanes) {
      float* to = dx + c * inSize;
      std::fill_n(to, inSize * p_.lanes, 0.0f);
      if (p_.lanes > 1) {
        averageGrad16(p_, dy + c * outSize, to);
        continue;
      }
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
  MaxPoolGradKernel(std::int64_t channels, std::int64_t inSize, std::int64_t outSize, std::int64_t lanes, int threads)
      : channels_(channels), inSize_(inSize), outSize_(outSize), lanes_(lanes), threads_(threads) {}
  Status run(const KernelCall& call) override {
    const auto* dy = static_cast<const float*>(call.inputs[0].data);
    const auto* indices = static_cast<const std::int64_t*>(call.inputs[1].data);
    auto* dx = static_cast<float*>(call.outputs[0].data);
    std::int64_t strays = 0;
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(+ : strays)
    for (std::int64_t c = 0; c < channels_; c += lanes_) {
      float* to = dx + c * inSize_;
      std::fill_n(to, inSize_ * lanes_, 0.0f);
      for (std::int64_t o = c * outSize_; o < (c + lanes_) * outSize_;)
        for (std::int64_t lane = 0; lane < lanes_; ++lane, ++o) {
          const std::int64_t i = indices[o] - (c + lane) * inSize_;
          if (i >= 0 && i < inSize_)
            to[i * lanes_ + lane] += dy[o];
          else
            strays += indices[o] != -1;
        }
    }
    if (strays > 0)
      return invalid("MaxPoolGrad: " + std::to_string(strays) +
                     " indices outside their channel; expected the indices of MaxPool");
    return {};
  }
  std::string implementation() const override { return "openmp scatter"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  std::int64_t channels_, inSize_, outSize_, lanes_;
  int threads_;
};

class GlobalAveragePoolKernel final : public Kernel {
 public:
  GlobalAveragePoolKernel(std::int64_t channels, std::int64_t size, std::int64_t lanes, int threads)
      : channels_(channels), size_(size), lanes_(lanes), threads_(threads) {}
  Status run(const KernelCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    if (lanes_ > 1) {
#pragma omp parallel for schedule(static) num_threads(threads_)
      for (std::int64_t c = 0; c < channels_; c += kLanes) mean16(x + c * size_, y + c, size_);
      return {};
    }
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
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  std::int64_t channels_, size_, lanes_;
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
  if (spec.attrs.integer("storage_order", 0) != 0)
    return unsupported("MaxPoolGrad: column-major indices are for the reference kernel");
  if (x.size() < 3 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1] || spec.inputs[1].dims != y)
    return unsupported("MaxPoolGrad: the fast kernel takes indices per channel");
  const Layout layout = spec.inputs[0].layout;
  if (spec.inputs[1].layout != layout || spec.outputs[0].layout != layout)
    return unsupported("MaxPoolGrad: operands in different layouts");
  const std::int64_t channels = x[0] * x[1];
  if (channels == 0) return unsupported("MaxPoolGrad: an extent is 0; falls back to the reference kernel");
  return std::unique_ptr<Kernel>(std::make_unique<MaxPoolGradKernel>(
      channels, elementCount(x) / channels, elementCount(y) / channels, layout == Layout::kPlain ? 1 : kLanes,
      threadsForElements(elementCount(x) + elementCount(y), spec.threads)));
}

Result<std::unique_ptr<Kernel>> makeGlobalAveragePool(const KernelSpec& spec) {
  const Dims& x = spec.inputs[0].dims;
  if (spec.inputs[0].dtype != DType::kF32) return unsupported("GlobalAveragePool: the fast kernel takes float32");
  if (x.size() < 2 || elementCount(x) == 0)
    return unsupported("GlobalAveragePool: an extent is 0; falls back to the reference kernel");
  const std::int64_t channels = x[0] * x[1];
  // One position per channel lies the same in both layouts.
  const std::int64_t lanes = spec.inputs[0].layout == Layout::kPlain ? 1 : kLanes;
  return std::unique_ptr<Kernel>(std::make_unique<GlobalAveragePoolKernel>(
      channels, elementCount(x) / channels, lanes, threadsForElements(elementCount(x), spec.threads)));
}

}  // namespace stepscope::cpu
