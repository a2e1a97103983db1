// Pad (constant, reflect, edge, wrap) and PadGrad, which adds every padded element back to where it was copied from.
#include "kernels/reference/movement/common.h"
#include "kernels/reference/movement/pad_mode.h"

namespace stepscope::reference {

Result<PadMode> padMode(const KernelSpec& spec) {
  const std::string mode = spec.attrs.text("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "wrap") return PadMode::kWrap;
  return kernelError(spec, "mode '" + mode + "'; expected constant, reflect, edge or wrap");
}

std::int64_t padSource(PadMode mode, std::int64_t i, std::int64_t extent) {
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case PadMode::kConstant: return -1;
    case PadMode::kEdge: return i < 0 ? 0 : extent - 1;
    case PadMode::kWrap: return ((i % extent) + extent) % extent;
    case PadMode::kReflect: break;
  }
  const std::int64_t period = 2 * (extent - 1);
  if (period == 0) return 0;
  const std::int64_t r = ((i % period) + period) % period;
  return r < extent ? r : period - r;
}

namespace {

struct Pads {
  Extents begin{}, end{};
};

Result<Pads> padsOf(const KernelSpec& spec, const KernelCall& call, const Dims& data, const Dims& padded,
                    std::size_t padsInput, std::size_t axesInput) {
  SS_TRY(checkRank(spec, data.size()));
  Pads result;
  const TensorView& pads = call.inputs[padsInput];
  const bool hasAxes = call.inputPresent(axesInput);
  const std::int64_t count = hasAxes ? call.inputs[axesInput].elements() : static_cast<std::int64_t>(data.size());
  if (pads.elements() != 2 * count)
    return kernelError(
        spec, std::to_string(pads.elements()) + " pads; expected two for each of " + std::to_string(count) + " axes");
  for (std::int64_t i = 0; i < count; ++i) {
    const auto axis =
        normalizeAxis(hasAxes ? elementAsInt(call.inputs[axesInput], i) : i, static_cast<std::int64_t>(data.size()));
    if (!axis)
      return kernelError(spec, "axis at position " + std::to_string(i) + " out of range for shape " + dimsText(data));
    result.begin[static_cast<std::size_t>(*axis)] = elementAsInt(pads, i);
    result.end[static_cast<std::size_t>(*axis)] = elementAsInt(pads, count + i);
  }
  bool fits = data.size() == padded.size();
  for (std::size_t a = 0; fits && a < data.size(); ++a) {
    std::int64_t extent = 0;
    fits = !__builtin_add_overflow(data[a], result.begin[a], &extent) &&
           !__builtin_add_overflow(extent, result.end[a], &extent) && extent == padded[a];
  }
  if (!fits) return kernelError(spec, "pads do not lead from shape " + dimsText(data) + " to " + dimsText(padded));
  return result;
}

// Calls f(offset in the padded tensor, offset in the data or -1), row-major over the padded tensor.
template <typename F>
Status walkPadded(const KernelSpec& spec, PadMode mode, const Dims& data, const Dims& padded, const Pads& pads, F&& f) {
  const std::int64_t count = elementCount(padded);
  if (mode != PadMode::kConstant && count > 0 && elementCount(data) == 0)
    return kernelError(spec, "nothing to copy from in shape " + dimsText(data));
  const Extents strides = stridesOf(data);
  Extents index{};
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t source = 0;
    for (std::size_t a = 0; a < data.size(); ++a) {
      const std::int64_t at = padSource(mode, index[a] - pads.begin[a], data[a]);
      if (at < 0) {
        source = -1;
        break;
      }
      source += at * strides[a];
    }
    f(i, source);
    for (std::size_t a = data.size(); a-- > 0;) {
      if (++index[a] < padded[a]) break;
      index[a] = 0;
    }
  }
  return {};
}

}  // namespace

Status padKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_ASSIGN(const PadMode mode, padMode(spec));
  SS_ASSIGN(const Pads pads, padsOf(spec, call, x.dims, y.dims, 1, 3));
  if (call.inputPresent(2) && (call.inputs[2].dtype != x.dtype || call.inputs[2].elements() != 1))
    return kernelError(spec, "constant_value must be one element of the type of the data");
  Status status;
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T fill = call.inputPresent(2) ? *static_cast<const T*>(call.inputs[2].data) : T{};
    const T* from = static_cast<const T*>(x.data);
    T* to = static_cast<T*>(y.data);
    status = walkPadded(spec, mode, x.dims, y.dims, pads,
                        [&](std::int64_t i, std::int64_t source) { to[i] = source < 0 ? fill : from[source]; });
  });
  return status;
}

Status padGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  SS_ASSIGN(const PadMode mode, padMode(spec));
  SS_ASSIGN(const Pads pads, padsOf(spec, call, dx.dims, dy.dims, 2, 3));
  return accumulate(spec, call, 0, [&](auto* sums, const auto* values) -> Status {
    using A = std::remove_pointer_t<decltype(sums)>;
    return walkPadded(spec, mode, dx.dims, dy.dims, pads, [&](std::int64_t i, std::int64_t place) {
      if (place >= 0) sums[place] = A(sums[place] + A(values[i]));
    });
  });
}

}  // namespace stepscope::reference
