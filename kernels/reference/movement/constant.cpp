// Constant, ConstantOfShape, EyeLike, MelWeightMatrix, Range: values from attributes and numbers.
#include <cmath>
#include <cstdint>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

template <typename T>
Status copyList(const KernelSpec& spec, const KernelCall& call, const std::vector<T>& values) {
  if (call.outputs[0].elements() != static_cast<std::int64_t>(values.size()))
    return kernelError(spec, "output of another size");
  std::copy(values.begin(), values.end(), static_cast<T*>(call.outputs[0].data));
  return {};
}

}  // namespace

Status constantKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  if (const Tensor* value = spec.attrs.tensor("value")) {
    SS_TRY(checkOutput(spec, call, 0, value->dims().data(), value->dims().size()));
    dispatchBySize(y.dtype, [&](auto tag) {
      using T = decltype(tag);
      copyRun(static_cast<T*>(y.data), static_cast<const T*>(value->data()), y.elements());
    });
    return {};
  }
  if (const AttrValue* value = spec.attrs.find("value_int"))
    return copyList<std::int64_t>(spec, call, {std::get<std::int64_t>(*value)});
  if (const AttrValue* value = spec.attrs.find("value_float")) return copyList<float>(spec, call, {std::get<float>(*value)});
  if (const AttrValue* value = spec.attrs.find("value_string"))
    return copyList<std::string>(spec, call, {std::get<std::string>(*value)});
  if (spec.attrs.has("value_ints")) return copyList(spec, call, spec.attrs.integers("value_ints"));
  if (spec.attrs.has("value_floats")) return copyList(spec, call, spec.attrs.reals("value_floats"));
  if (const AttrValue* value = spec.attrs.find("value_strings"))
    return copyList(spec, call, std::get<std::vector<std::string>>(*value));
  return kernelError(spec, "no value attribute");
}

Status constantOfShapeKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const TensorView& shape = call.inputs[0];
  SS_TRY(checkRank(spec, static_cast<std::size_t>(shape.elements())));
  Extents dims{};
  for (std::int64_t i = 0; i < shape.elements(); ++i) dims[static_cast<std::size_t>(i)] = elementAsInt(shape, i);
  SS_TRY(checkOutput(spec, call, 0, dims.data(), static_cast<std::size_t>(shape.elements())));
  const Tensor* value = spec.attrs.tensor("value");
  dispatchBySize(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T fill = value != nullptr ? *static_cast<const T*>(value->data()) : T{};
    std::fill_n(static_cast<T*>(y.data), y.elements(), fill);
  });
  return {};
}

Status eyeLikeKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const std::int64_t k = spec.attrs.integer("k", 0);
  const bool known = dispatchFixed(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    T* out = static_cast<T*>(y.data);
    for (std::int64_t row = 0; row < y.dims[0]; ++row)
      for (std::int64_t column = 0; column < y.dims[1]; ++column)
        out[row * y.dims[1] + column] = T(column - row == k ? 1 : 0);
  });
  if (!known) return kernelError(spec, "type " + std::string(dtypeName(y.dtype)) + " has no ones");
  return {};
}

// Triangle m rises from edge m to edge m + 1 and falls to edge m + 2; the edges are equally far apart on the mel scale.
Status melWeightMatrixKernel(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t i = 0; i < 5; ++i)
    if (call.inputs[i].elements() != 1) return kernelError(spec, "operands must be scalars");
  const std::int64_t melBins = elementAsInt(call.inputs[0], 0), length = elementAsInt(call.inputs[1], 0),
                     rate = elementAsInt(call.inputs[2], 0);
  if (melBins < 1 || melBins > INT32_MAX || length < 1 || length > INT32_MAX || rate < 1)
    return kernelError(spec, "mel bins, dft length and sample rate must be positive");
  const std::int64_t bins = length / 2 + 1, dims[] = {bins, melBins};
  SS_TRY(checkOutput(spec, call, 0, dims, 2));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(elementAsDouble(call.inputs[3], 0)),
               step = (mel(elementAsDouble(call.inputs[4], 0)) - low) / static_cast<double>(melBins + 2);
  const auto edge = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10.0, (low + static_cast<double>(i) * step) / 2595) - 1);
    return std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
  };
  if (!(edge(0) >= 0 && edge(0) < static_cast<double>(bins) && edge(melBins + 1) >= 0 &&
        edge(melBins + 1) <= static_cast<double>(bins)))
    return kernelError(spec, "edges outside the spectrum; expected frequencies from 0 to half the sample rate");
  const TensorView& y = call.outputs[0];
  for (std::int64_t m = 0; m < melBins; ++m) {
    const double first = edge(m), middle = edge(m + 1), last = edge(m + 2);
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      const auto at = static_cast<double>(bin);
      double height = at == middle ? 1 : 0;
      if (at >= first && at < middle) height = (at - first) / (middle - first);
      if (at > middle && at < last) height = (last - at) / (last - middle);
      storeElement(y, bin * melBins + m, height);
    }
  }
  return {};
}

Status rangeKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &start = call.inputs[0], &limit = call.inputs[1], &delta = call.inputs[2];
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1)
    return kernelError(spec, "operands must be scalars");
  std::int64_t count = 0;
  if (isFloating(start.dtype)) {
    const double step = elementAsDouble(delta, 0);
    const double steps = std::ceil((elementAsDouble(limit, 0) - elementAsDouble(start, 0)) / step);
    if (step == 0 || !std::isfinite(steps) || steps > 1e15)
      return kernelError(spec, "step " + std::to_string(step) + " gives no finite range");
    count = steps > 0 ? static_cast<std::int64_t>(steps) : 0;
  } else {
    const std::int64_t step = elementAsInt(delta, 0);
    std::int64_t span = 0;
    if (step == 0 || __builtin_sub_overflow(elementAsInt(limit, 0), elementAsInt(start, 0), &span))
      return kernelError(spec, "step " + std::to_string(step) + " gives no finite range");
    if (span != 0 && (span < 0) == (step < 0)) count = step == -1 ? -span : span / step + (span % step != 0 ? 1 : 0);
  }
  if (!spec.outputs.empty() && spec.outputs[0].dynamic) {
    SS_TRY(prepareOutput(spec, call, 0, {count}));
  } else {
    SS_TRY(checkOutput(spec, call, 0, &count, 1));
  }
  const bool known = dispatchNumeric(start.dtype, [&](auto tag) {
    using T = decltype(tag);
    T* y = static_cast<T*>(call.outputs[0].data);
    if constexpr (std::is_integral_v<T>) {
      const auto first = static_cast<std::uint64_t>(elementAsInt(start, 0)),
                 step = static_cast<std::uint64_t>(elementAsInt(delta, 0));
      for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(first + static_cast<std::uint64_t>(i) * step);
    } else {
      const double first = elementAsDouble(start, 0), step = elementAsDouble(delta, 0);
      for (std::int64_t i = 0; i < count; ++i) y[i] = T(first + static_cast<double>(i) * step);
    }
  });
  if (!known) return kernelError(spec, "type " + std::string(dtypeName(start.dtype)) + "; expected a number type");
  return {};
}

}  // namespace stepscope::reference
