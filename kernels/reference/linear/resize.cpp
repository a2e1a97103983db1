#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/resize_axes.h"

namespace stepscope::reference {
namespace {

// Applies the matrix of one axis (or its transpose) to `values`, whose extents are outer x from x inner.
std::vector<double> apply(const ResizeAxis& axis, const std::vector<double>& values, std::int64_t outer, std::int64_t inner,
                          bool transposed) {
  const std::int64_t from = transposed ? axis.out : axis.in, to = transposed ? axis.in : axis.out;
  std::vector<double> result(static_cast<std::size_t>(outer * to * inner), 0.0);
  for (std::int64_t u = 0; u < outer; ++u)
    for (std::int64_t o = 0; o < axis.out; ++o)
      for (std::size_t tap = axis.start[static_cast<std::size_t>(o)]; tap < axis.start[static_cast<std::size_t>(o) + 1];
           ++tap) {
        const std::int64_t position = axis.position[tap];
        const std::int64_t source = (u * from + (transposed ? o : position)) * inner,
                           target = (u * to + (transposed ? position : o)) * inner;
        for (std::int64_t i = 0; i < inner; ++i)
          result[static_cast<std::size_t>(target + i)] += axis.weight[tap] * values[static_cast<std::size_t>(source + i)];
      }
  return result;
}

bool changes(const ResizeAxis& axis) {
  if (axis.in != axis.out) return true;
  for (std::size_t i = 0; i < axis.position.size(); ++i)
    if (axis.position[i] != static_cast<std::int64_t>(i) || axis.weight[i] != 1) return true;
  return false;
}

std::vector<double> applyAll(const ResizeAxes& axes, std::vector<double> values, bool transposed) {
  Dims extents;
  for (const ResizeAxis& axis : axes.axes) extents.push_back(transposed ? axis.out : axis.in);
  for (std::size_t k = 0; k < axes.axes.size(); ++k) {
    if (!changes(axes.axes[k])) continue;
    const std::int64_t outer = elementCount(std::span(extents).first(k)),
                       inner = elementCount(std::span(extents).subspan(k + 1));
    values = apply(axes.axes[k], values, outer, inner, transposed);
    extents[k] = transposed ? axes.axes[k].in : axes.axes[k].out;
  }
  return values;
}

// body(flat output position, whether it lies outside, flat input position of the first taps)
template <typename Body>
void forEachOutput(const ResizeAxes& axes, const Dims& y, Body&& body) {
  Dims in;
  for (const ResizeAxis& axis : axes.axes) in.push_back(axis.in);
  const Dims strides = rowMajorStrides(in);
  const std::int64_t total = elementCount(y);
  for (std::int64_t o = 0; o < total; ++o) {
    std::int64_t rest = o, source = 0;
    bool outside = false;
    for (std::size_t k = y.size(); k-- > 0;) {
      const auto at = static_cast<std::size_t>(rest % y[k]);
      rest /= y[k];
      const ResizeAxis& axis = axes.axes[k];
      outside = outside || axis.outside[at];
      source += axis.position[axis.start[at]] * strides[k];
    }
    body(o, outside, source);
  }
}

template <typename T>
T narrow(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (!(value > static_cast<double>(std::numeric_limits<T>::lowest()))) return std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

}  // namespace

Status resize(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_ASSIGN(const ResizeAxes axes, resizeAxes(spec.attrs, call, 1, x.dims, y.dims));
  if (y.elements() == 0) return {};
  if (axes.nearest) {
    const bool moved = dispatchFixed(x.dtype, [&](auto tag) {
      using T = decltype(tag);
      const T* from = static_cast<const T*>(x.data);
      T* to = static_cast<T*>(y.data);
      forEachOutput(axes, y.dims, [&](std::int64_t o, bool outside, std::int64_t source) {
        to[o] = outside ? static_cast<T>(axes.extrapolation) : from[source];
      });
    });
    return moved ? Status{} : unsupported("Resize: dtype " + std::string(dtypeName(x.dtype)) + "; expected a number");
  }
  const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto source = x.as<T>();
    std::vector<double> values(source.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(source[i]);
    values = applyAll(axes, std::move(values), false);
    T* to = static_cast<T*>(y.data);
    forEachOutput(axes, y.dims, [&](std::int64_t o, bool outside, std::int64_t) {
      to[o] = narrow<T>(outside ? axes.extrapolation : values[static_cast<std::size_t>(o)]);
    });
  });
  return known ? Status{} : unsupported("Resize: dtype " + std::string(dtypeName(x.dtype)) + "; expected a number");
}

Status resizeGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  SS_ASSIGN(const ResizeAxes axes, resizeAxes(spec.attrs, call, 2, dx.dims, dy.dims));
  const bool known = dispatchFloat(dy.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::vector<double> values(static_cast<std::size_t>(dy.elements()), 0.0);
    const T* from = static_cast<const T*>(dy.data);
    if (!values.empty())
      forEachOutput(axes, dy.dims, [&](std::int64_t o, bool outside, std::int64_t) {
        if (!outside) values[static_cast<std::size_t>(o)] = static_cast<double>(from[o]);
      });
    values = applyAll(axes, std::move(values), true);
    T* to = static_cast<T*>(dx.data);
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
  });
  return known ? Status{} : unsupported("ResizeGrad: dtype " + std::string(dtypeName(dy.dtype)) + "; expected a float");
}

}  // namespace stepscope::reference
