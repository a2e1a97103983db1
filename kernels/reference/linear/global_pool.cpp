#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {
namespace {

// Calls body(channel, first element, size) with typed pointers for every channel of x [N, C, …].
template <typename Body>
Status forEachChannel(const KernelSpec& spec, const TensorView& x, Body&& body) {
  if (x.dims.size() < 2) return invalid(spec.op + ": input of shape " + dimsText(x.dims) + "; expected rank 2 or more");
  const std::int64_t channels = x.dims[0] * x.dims[1];
  const std::int64_t size = elementCount(std::span(x.dims).subspan(2));
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t c = 0; c < channels; ++c) body(c, static_cast<const T*>(x.data) + c * size, size);
  });
  if (!known) return unsupported(spec.op + ": dtype " + std::string(dtypeName(x.dtype)) + "; expected a float");
  return {};
}

template <typename T>
std::int64_t firstMaximum(const T* x, std::int64_t size) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < size; ++i)
    if (x[i] > x[best] || (x[i] != x[i] && x[best] == x[best])) best = i;
  return best;
}

template <typename T>
T* mutableData(const TensorView& view, const T*) {
  return static_cast<T*>(view.data);
}

}  // namespace

Status globalAveragePool(const KernelSpec& spec, const KernelCall& call) {
  return forEachChannel(spec, call.inputs[0], [&](std::int64_t c, auto* x, std::int64_t size) {
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(x[i]);
    storeElement(call.outputs[0], c, sum / static_cast<double>(size));
  });
}

Status globalMaxPool(const KernelSpec& spec, const KernelCall& call) {
  return forEachChannel(spec, call.inputs[0], [&](std::int64_t c, auto* x, std::int64_t size) {
    storeElement(call.outputs[0], c, size == 0 ? -INFINITY : static_cast<double>(x[firstMaximum(x, size)]));
  });
}

Status globalMaxPoolGrad(const KernelSpec& spec, const KernelCall& call) {
  return forEachChannel(spec, call.inputs[1], [&](std::int64_t c, auto* x, std::int64_t size) {
    if (size == 0) return;
    auto* dx = mutableData(call.outputs[0], x) + c * size;
    std::fill_n(dx, size, 0.0f);
    dx[firstMaximum(x, size)] = mutableData(call.inputs[0], x)[c];
  });
}

Status globalLpPool(const KernelSpec& spec, const KernelCall& call) {
  const auto power = static_cast<double>(spec.attrs.integer("p", 2));
  return forEachChannel(spec, call.inputs[0], [&](std::int64_t c, auto* x, std::int64_t size) {
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += std::pow(std::fabs(static_cast<double>(x[i])), power);
    storeElement(call.outputs[0], c, std::pow(sum, 1 / power));
  });
}

}  // namespace stepscope::reference
