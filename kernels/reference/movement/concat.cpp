// Concat and Split: runs of `extent * inner` elements, one per outer index and part.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

struct Axis {
  std::size_t axis = 0;
  std::int64_t outer = 1, extent = 0, inner = 1;
};

Result<Axis> axisOf(const KernelSpec& spec, const Dims& dims, std::int64_t fallback) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", fallback), static_cast<std::int64_t>(dims.size()));
  if (!axis) return kernelError(spec, "axis out of range for shape " + dimsText(dims));
  const auto a = static_cast<std::size_t>(*axis);
  return Axis{a, product(dims, 0, a), dims[a], product(dims, a + 1, dims.size())};
}

// The parts must agree with the whole in every axis but one, and fill that one.
Status checkPart(const KernelSpec& spec, const Dims& part, const Dims& whole, std::size_t axis) {
  bool agrees = part.size() == whole.size();
  for (std::size_t a = 0; agrees && a < whole.size(); ++a) agrees = a == axis || part[a] == whole[a];
  if (!agrees) return kernelError(spec, "part of shape " + dimsText(part) + " does not fit shape " + dimsText(whole));
  return {};
}

}  // namespace

Status concatKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  SS_ASSIGN(const Axis whole, axisOf(spec, y.dims, 0));
  std::int64_t total = 0;
  for (const TensorView& x : call.inputs) {
    SS_TRY(checkPart(spec, x.dims, y.dims, whole.axis));
    total += x.dims[whole.axis];
  }
  if (total != whole.extent)
    return kernelError(spec, "inputs fill " + std::to_string(total) + " of shape " + dimsText(y.dims));
  dispatchBySize(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::int64_t offset = 0;
    for (const TensorView& x : call.inputs) {
      const std::int64_t run = x.dims[whole.axis] * whole.inner;
      for (std::int64_t o = 0; o < whole.outer; ++o)
        copyRun(static_cast<T*>(y.data) + o * whole.extent * whole.inner + offset, static_cast<const T*>(x.data) + o * run,
                run);
      offset += run;
    }
  });
  if (call.outputPresent(1))  // ConcatTraining
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      static_cast<std::int64_t*>(call.outputs[1].data)[i] = call.inputs[i].dims[whole.axis];
  return {};
}

Status splitKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Axis whole, axisOf(spec, x.dims, 0));
  const std::size_t parts = call.outputs.size();
  const bool listed = call.inputPresent(1);
  if (listed && call.inputs[1].elements() != static_cast<std::int64_t>(parts))
    return kernelError(spec, std::to_string(call.inputs[1].elements()) + " sizes; expected one per output");
  // ONNX Split-18: ceil(extent / n) each, the last part is what is left.
  const std::int64_t count = spec.attrs.integer("num_outputs", static_cast<std::int64_t>(parts));
  if (count < static_cast<std::int64_t>(parts) || count < 1)
    return kernelError(spec, "num_outputs is not the number of outputs");
  const std::int64_t chunk = whole.extent / count + (whole.extent % count != 0 ? 1 : 0);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::int64_t size = listed ? elementAsInt(call.inputs[1], static_cast<std::int64_t>(i))
                                     : std::clamp<std::int64_t>(whole.extent - begin, 0, chunk);
    if (size < 0 || size > whole.extent - begin)
      return kernelError(spec, "size " + std::to_string(size) + " at position " + std::to_string(i) +
                                   " does not fit axis of extent " + std::to_string(whole.extent));
    if (call.outputPresent(i)) {
      const TensorView& y = call.outputs[i];
      SS_TRY(checkPart(spec, y.dims, x.dims, whole.axis));
      if (y.dims[whole.axis] != size)
        return kernelError(spec, "size " + std::to_string(size) + " differs from the planned shape " + dimsText(y.dims));
      dispatchBySize(x.dtype, [&](auto tag) {
        using T = decltype(tag);
        const std::int64_t run = size * whole.inner;
        for (std::int64_t o = 0; o < whole.outer; ++o)
          copyRun(static_cast<T*>(y.data) + o * run,
                  static_cast<const T*>(x.data) + (o * whole.extent + begin) * whole.inner, run);
      });
    }
    begin += size;
  }
  if (listed && begin != whole.extent)
    return kernelError(spec, "sizes add up to " + std::to_string(begin) + "; expected " + std::to_string(whole.extent));
  return {};
}

}  // namespace stepscope::reference
