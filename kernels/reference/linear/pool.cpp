#include <cmath>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/taps.h"

namespace stepscope::reference {
namespace {

struct Pool {
  Window window;
  Dims in, out;
  std::int64_t channels = 0;  // batch times channels
  std::int64_t inSize = 0, outSize = 0;
};

Result<Pool> poolOf(const KernelSpec& spec, const Dims& x, const Dims& y) {
  if (x.size() < 2 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1])
    return invalid(spec.op + ": shapes " + dimsText(x) + " and " + dimsText(y) + "; expected [N, C, …] both");
  Pool p;
  p.in.assign(x.begin() + 2, x.end());
  p.out.assign(y.begin() + 2, y.end());
  SS_ASSIGN(p.window, parseWindow(spec.attrs, p.in.size()));
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    SS_ASSIGN(const std::int64_t out, windowOutput(p.window, i, p.in[i]));
    if (out != p.out[i]) return invalid(spec.op + ": output " + dimsText(y) + " does not follow from input " + dimsText(x));
  }
  resolvePads(p.window, p.in, p.out);
  p.channels = x[0] * x[1];
  p.inSize = elementCount(p.in);
  p.outSize = p.channels == 0 ? 0 : elementCount(p.out);
  return p;
}

Status unsupportedType(const KernelSpec& spec) {
  return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + " is not taken");
}

// The number of a spatial position when the spatial axes are counted column-major.
std::int64_t columnMajor(std::int64_t position, const Dims& extents) {
  std::int64_t result = 0, stride = elementCount(extents);
  for (std::size_t i = extents.size(); i-- > 0;) {
    stride /= extents[i];
    result += position % extents[i] * stride;
    position /= extents[i];
  }
  return result;
}

std::int64_t rowMajor(std::int64_t position, const Dims& extents) {
  return columnMajor(position, Dims(extents.rbegin(), extents.rend()));
}

}  // namespace

Status maxPool(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Pool p, poolOf(spec, call.inputs[0].dims, call.outputs[0].dims));
  const bool columns = spec.attrs.integer("storage_order", 0) != 0;
  auto* indices = call.outputPresent(1) ? static_cast<std::int64_t*>(call.outputs[1].data) : nullptr;
  const bool known = dispatchNumeric(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* x = static_cast<const T*>(call.inputs[0].data);
    T* y = static_cast<T*>(call.outputs[0].data);
    std::vector<Tap> taps;
    for (std::int64_t o = 0; o < p.outSize; ++o) {
      tapsOfOutput(p.window, p.in, p.out, o, taps);
      for (std::int64_t c = 0; c < p.channels; ++c) {
        std::int64_t best = -1;
        for (const Tap& tap : taps) {
          const T value = x[c * p.inSize + tap.position];
          if (best < 0 || value > x[c * p.inSize + best] ||
              (value != value && x[c * p.inSize + best] == x[c * p.inSize + best]))
            best = tap.position;
        }
        T lowest;
        if constexpr (std::is_integral_v<T>)
          lowest = std::numeric_limits<T>::lowest();
        else
          lowest = static_cast<T>(-std::numeric_limits<float>::infinity());
        y[c * p.outSize + o] = best < 0 ? lowest : x[c * p.inSize + best];
        if (indices) indices[c * p.outSize + o] = best < 0 ? -1 : c * p.inSize + (columns ? columnMajor(best, p.in) : best);
      }
    }
  });
  return known ? Status{} : unsupportedType(spec);
}

Status maxPoolGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& dx = call.outputs[0];
  const Dims in(dx.dims.begin() + 2, dx.dims.end());
  const std::int64_t inSize = elementCount(in), total = dx.elements(), count = call.inputs[0].elements();
  const auto* indices = static_cast<const std::int64_t*>(call.inputs[1].data);
  const bool columns = spec.attrs.integer("storage_order", 0) != 0;
  if (call.inputs[1].elements() != count)
    return invalid("MaxPoolGrad: " + std::to_string(call.inputs[1].elements()) + " indices; expected " +
                   std::to_string(count));
  Status status;
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = static_cast<const T*>(call.inputs[0].data);
    T* out = static_cast<T*>(dx.data);
    std::vector<double> sums(static_cast<std::size_t>(total), 0.0);
    for (std::int64_t o = 0; o < count; ++o) {
      std::int64_t i = indices[o];
      if (i == -1) continue;
      if (i < 0 || i >= total) {
        status = invalid("MaxPoolGrad: index " + std::to_string(i) + "; expected 0.." + std::to_string(total - 1));
        return;
      }
      if (columns) i = i / inSize * inSize + rowMajor(i % inSize, in);
      sums[static_cast<std::size_t>(i)] += static_cast<double>(dy[o]);
    }
    for (std::int64_t i = 0; i < total; ++i) out[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  });
  return known ? status : unsupportedType(spec);
}

Status averagePool(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Pool p, poolOf(spec, call.inputs[0].dims, call.outputs[0].dims));
  const bool padded = spec.attrs.integer("count_include_pad", 0) != 0;
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* x = static_cast<const T*>(call.inputs[0].data);
    T* y = static_cast<T*>(call.outputs[0].data);
    std::vector<Tap> taps;
    for (std::int64_t o = 0; o < p.outSize; ++o) {
      tapsOfOutput(p.window, p.in, p.out, o, taps);
      const std::int64_t size = padded ? paddedCount(p.window, p.in, p.out, o) : static_cast<std::int64_t>(taps.size());
      for (std::int64_t c = 0; c < p.channels; ++c) {
        double sum = 0;
        for (const Tap& tap : taps) sum += static_cast<double>(x[c * p.inSize + tap.position]);
        y[c * p.outSize + o] = static_cast<T>(size == 0 ? 0 : sum / static_cast<double>(size));
      }
    }
  });
  return known ? Status{} : unsupportedType(spec);
}

Status averagePoolGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Pool p, poolOf(spec, call.outputs[0].dims, call.inputs[0].dims));
  const bool padded = spec.attrs.integer("count_include_pad", 0) != 0;
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = static_cast<const T*>(call.inputs[0].data);
    T* dx = static_cast<T*>(call.outputs[0].data);
    std::vector<double> sums(static_cast<std::size_t>(p.channels * p.inSize), 0.0);
    std::vector<Tap> taps;
    for (std::int64_t o = 0; o < p.outSize; ++o) {
      tapsOfOutput(p.window, p.in, p.out, o, taps);
      const std::int64_t size = padded ? paddedCount(p.window, p.in, p.out, o) : static_cast<std::int64_t>(taps.size());
      for (std::int64_t c = 0; c < p.channels; ++c) {
        const double share = static_cast<double>(dy[c * p.outSize + o]) / static_cast<double>(size);
        for (const Tap& tap : taps) sums[static_cast<std::size_t>(c * p.inSize + tap.position)] += share;
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
  return known ? Status{} : unsupportedType(spec);
}

Status lpPool(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Pool p, poolOf(spec, call.inputs[0].dims, call.outputs[0].dims));
  const auto power = static_cast<double>(spec.attrs.integer("p", 2));
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* x = static_cast<const T*>(call.inputs[0].data);
    T* y = static_cast<T*>(call.outputs[0].data);
    std::vector<Tap> taps;
    for (std::int64_t o = 0; o < p.outSize; ++o) {
      tapsOfOutput(p.window, p.in, p.out, o, taps);
      for (std::int64_t c = 0; c < p.channels; ++c) {
        double sum = 0;
        for (const Tap& tap : taps) sum += std::pow(std::fabs(static_cast<double>(x[c * p.inSize + tap.position])), power);
        y[c * p.outSize + o] = static_cast<T>(std::pow(sum, 1 / power));
      }
    }
  });
  return known ? Status{} : unsupportedType(spec);
}

Status lpPoolGrad(const KernelSpec& spec, const KernelCall& call) {
  KernelSpec local = spec;
  const Dims& xDims = call.inputs[1].dims;
  if (!spec.attrs.has("kernel_shape") && xDims.size() >= 2)
    local.attrs.set("kernel_shape", std::vector<std::int64_t>(xDims.begin() + 2, xDims.end()));
  if (call.outputs[0].elements() == 0) return {};
  SS_ASSIGN(const Pool p, poolOf(local, xDims, call.inputs[0].dims));
  const auto power = static_cast<double>(spec.attrs.integer("p", 2));
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = static_cast<const T*>(call.inputs[0].data);
    const T* x = static_cast<const T*>(call.inputs[1].data);
    const T* y = static_cast<const T*>(call.inputs[2].data);
    T* dx = static_cast<T*>(call.outputs[0].data);
    std::vector<double> sums(static_cast<std::size_t>(p.channels * p.inSize), 0.0);
    std::vector<Tap> taps;
    for (std::int64_t o = 0; o < p.outSize; ++o) {
      tapsOfOutput(p.window, p.in, p.out, o, taps);
      for (std::int64_t c = 0; c < p.channels; ++c) {
        const auto norm = static_cast<double>(y[c * p.outSize + o]);
        if (norm == 0) continue;
        for (const Tap& tap : taps) {
          const auto value = static_cast<double>(x[c * p.inSize + tap.position]);
          if (value == 0) continue;
          sums[static_cast<std::size_t>(c * p.inSize + tap.position)] += static_cast<double>(dy[c * p.outSize + o]) *
                                                                         (value < 0 ? -1 : 1) *
                                                                         std::pow(std::fabs(value) / norm, power - 1);
        }
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
  return known ? Status{} : unsupportedType(spec);
}

// Where an index of MaxUnpool lies in y: it counts positions of the shape the window implies, which stands in the first
// corner of the shape that output_shape gives.
class UnpoolPlaces {
 public:
  static Result<UnpoolPlaces> make(const KernelSpec& spec, const Dims& x, const Dims& y) {
    UnpoolPlaces p;
    if (x.size() < 2 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1])
      return invalid(spec.op + ": shapes " + dimsText(x) + " and " + dimsText(y) + "; expected [N, C, …] both");
    SS_ASSIGN(const Window window, parseWindow(spec.attrs, x.size() - 2));
    p.y_ = y;
    p.implied_ = y;
    for (std::size_t i = 0; i + 2 < x.size(); ++i) {
      const WindowAxis& a = window.axes[i];
      const std::int64_t extent = (x[i + 2] - 1) * a.stride + a.kernel - a.padBegin - a.padEnd;
      if (extent < 1 || extent > y[i + 2])
        return invalid(spec.op + ": output " + dimsText(y) + " is smaller than the window implies");
      p.implied_[i + 2] = extent;
    }
    p.total_ = elementCount(p.implied_);
    return p;
  }
  // The flat position in y, or an error.
  Result<std::int64_t> operator[](std::int64_t index) const {
    if (index < 0 || index >= total_)
      return invalid("MaxUnpool: index " + std::to_string(index) + "; expected 0.." + std::to_string(total_ - 1));
    std::int64_t place = 0, stride = 1;
    for (std::size_t i = y_.size(); i-- > 0;) {
      place += index % implied_[i] * stride;
      index /= implied_[i];
      stride *= y_[i];
    }
    return place;
  }

 private:
  Dims y_, implied_;
  std::int64_t total_ = 0;
};

Status maxUnpool(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (call.inputs[1].dims != x.dims)
    return invalid("MaxUnpool: indices of shape " + dimsText(call.inputs[1].dims) + "; expected " + dimsText(x.dims));
  if (y.elements() == 0) return {};
  SS_ASSIGN(const UnpoolPlaces places, UnpoolPlaces::make(spec, x.dims, y.dims));
  const auto* indices = static_cast<const std::int64_t*>(call.inputs[1].data);
  const std::int64_t count = x.elements(), total = y.elements();
  Status status;
  const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    T* out = static_cast<T*>(y.data);
    std::fill_n(out, total, T{});
    for (std::int64_t o = 0; o < count; ++o) {
      const auto place = places[indices[o]];
      if (!place) {
        status = tl::make_unexpected(place.error());
        return;
      }
      out[*place] = static_cast<const T*>(x.data)[o];
    }
  });
  return known ? status : unsupportedType(spec);
}

Status maxUnpoolGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  if (call.inputs[1].dims != dx.dims)
    return invalid("MaxUnpoolGrad: indices of shape " + dimsText(call.inputs[1].dims) + "; expected " + dimsText(dx.dims));
  const std::int64_t count = dx.elements();
  if (count == 0) return {};
  SS_ASSIGN(const UnpoolPlaces places, UnpoolPlaces::make(spec, dx.dims, dy.dims));
  const auto* indices = static_cast<const std::int64_t*>(call.inputs[1].data);
  Status status;
  const bool known = dispatchFloat(dy.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t o = 0; o < count; ++o) {
      const auto place = places[indices[o]];
      if (!place) {
        status = tl::make_unexpected(place.error());
        return;
      }
      static_cast<T*>(dx.data)[o] = static_cast<const T*>(dy.data)[*place];
    }
  });
  return known ? status : unsupportedType(spec);
}

}  // namespace stepscope::reference
