// Slice and SliceGrad: y[i] = x[start + i*step] per axis, and the zero-filled inverse.
#include "kernels/reference/movement/slice_window.h"

namespace stepscope::reference {

Result<SliceWindow> sliceWindow(const KernelSpec& spec, const KernelCall& call, const Dims& data, std::size_t first) {
  SS_TRY(checkRank(spec, data.size()));
  SliceWindow window;
  window.rank = data.size();
  for (std::size_t a = 0; a < data.size(); ++a) {
    window.extents[a] = data[a];
    window.steps[a] = 1;
  }
  const TensorView &starts = call.inputs[first], &ends = call.inputs[first + 1];
  const bool hasAxes = call.inputPresent(first + 2), hasSteps = call.inputPresent(first + 3);
  const std::int64_t count = starts.elements();
  if (ends.elements() != count || (hasAxes && call.inputs[first + 2].elements() != count) ||
      (hasSteps && call.inputs[first + 3].elements() != count) ||
      (!hasAxes && count > static_cast<std::int64_t>(data.size())))
    return kernelError(spec, "starts, ends, axes and steps of different lengths");
  for (std::int64_t i = 0; i < count; ++i) {
    const auto axis =
        normalizeAxis(hasAxes ? elementAsInt(call.inputs[first + 2], i) : i, static_cast<std::int64_t>(data.size()));
    if (!axis)
      return kernelError(spec, "axis at position " + std::to_string(i) + " out of range for shape " + dimsText(data));
    const auto a = static_cast<std::size_t>(*axis);
    const std::int64_t step = hasSteps ? elementAsInt(call.inputs[first + 3], i) : 1, extent = data[a];
    if (step == 0 || step == INT64_MIN)
      return kernelError(spec, "step " + std::to_string(step) + " at position " + std::to_string(i));
    const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    const auto clamp = [&](std::int64_t v) { return std::clamp(v < 0 ? v + extent : v, low, std::max(low, high)); };
    const std::int64_t start = clamp(elementAsInt(starts, i)), end = clamp(elementAsInt(ends, i));
    const std::int64_t span = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    window.extents[a] = span > 0 ? (span - 1) / stride + 1 : 0;
    window.starts[a] = start;
    window.steps[a] = step;
  }
  return window;
}

namespace {

// Offset of the first element, and strides of the window in the data.
std::int64_t place(const SliceWindow& window, Extents& strides) {
  std::int64_t offset = 0;
  for (std::size_t a = 0; a < window.rank; ++a) {
    offset += window.starts[a] * strides[a];
    // One element or none: the step is never taken, and a huge one must not be multiplied.
    strides[a] = window.extents[a] > 1 ? strides[a] * window.steps[a] : 0;
  }
  return offset;
}

}  // namespace

Status sliceKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_ASSIGN(const SliceWindow window, sliceWindow(spec, call, x.dims, 1));
  SS_TRY(checkOutput(spec, call, 0, window.extents.data(), window.rank));
  if (y.elements() == 0) return {};
  Extents from = stridesOf(x.dims);
  const std::int64_t offset = place(window, from);
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    stridedCopy(window.rank, window.extents, static_cast<T*>(y.data), stridesOf(y.dims),
                static_cast<const T*>(x.data) + offset, from);
  });
  return {};
}

Status sliceGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  SS_ASSIGN(const SliceWindow window, sliceWindow(spec, call, dx.dims, 2));
  if (dy.dims.size() != window.rank || !std::equal(dy.dims.begin(), dy.dims.end(), window.extents.begin()))
    return kernelError(spec, "gradient of shape " + dimsText(dy.dims) + "; expected " +
                                 dimsText(std::span(window.extents).first(window.rank)));
  Extents to = stridesOf(dx.dims);
  const std::int64_t offset = place(window, to);
  dispatchBySize(dx.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::fill_n(static_cast<T*>(dx.data), dx.elements(), T{});
    if (dy.elements() > 0)
      stridedCopy(window.rank, window.extents, static_cast<T*>(dx.data) + offset, to, static_cast<const T*>(dy.data),
                  stridesOf(dy.dims));
  });
  return {};
}

}  // namespace stepscope::reference
