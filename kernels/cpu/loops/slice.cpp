// Slice and Pad with constant, and their gradients: a window of one tensor is the other. Everything else (other modes of Pad, windows
// that do not fit) is left to the reference kernel, which names mistakes.
#include <cstring>
#include <optional>

#include "kernels/cpu/loops/strided.h"
#include "kernels/reference/movement/common.h"
#include "kernels/reference/movement/slice_window.h"

namespace stepscope::cpu {
namespace {

// The copy between the window of a tensor of shape `whole` and the tensor that holds the window alone.
StridedCopy copyOf(const reference::SliceWindow& window, const Dims& whole, bool toWindow, std::int64_t* offset) {
  const reference::Extents wide = reference::stridesOf(whole);
  std::array<std::int64_t, reference::kMaxRank> own{};
  std::int64_t step = 1;
  for (std::size_t a = window.rank; a-- > 0;) {
    own[a] = step;
    step *= window.extents[a];
  }
  StridedCopy copy;
  *offset = 0;
  for (std::size_t a = 0; a < window.rank; ++a) {
    *offset += window.starts[a] * wide[a];
    // One element: the step is never taken, and a huge one must not be multiplied.
    const std::int64_t stride = window.extents[a] > 1 ? wide[a] * window.steps[a] : 0;
    copy.add(window.extents[a], toWindow ? stride : own[a], toWindow ? own[a] : stride);
  }
  return copy;
}

bool fits(const reference::SliceWindow& window, const Dims& dims) {
  return dims.size() == window.rank && std::equal(dims.begin(), dims.end(), window.extents.begin());
}

// The window that the data takes in the padded tensor; nothing where an axis is cut or padded by something else than a constant.
std::optional<reference::SliceWindow> paddedWindow(const KernelCall& call, const Dims& data, const Dims& padded, std::size_t padsInput, std::size_t axesInput) {
  reference::SliceWindow window;
  window.rank = data.size();
  const TensorView& pads = call.inputs[padsInput];
  const bool hasAxes = call.inputPresent(axesInput);
  const std::int64_t count = hasAxes ? call.inputs[axesInput].elements() : static_cast<std::int64_t>(data.size());
  if (pads.elements() != 2 * count) return std::nullopt;
  for (std::size_t a = 0; a < data.size(); ++a) {
    window.extents[a] = data[a];
    window.steps[a] = 1;
  }
  std::array<std::int64_t, reference::kMaxRank> after{};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto axis = normalizeAxis(hasAxes ? elementAsInt(call.inputs[axesInput], i) : i, static_cast<std::int64_t>(data.size()));
    if (!axis) return std::nullopt;
    window.starts[static_cast<std::size_t>(*axis)] = elementAsInt(pads, i);
    after[static_cast<std::size_t>(*axis)] = elementAsInt(pads, count + i);
  }
  for (std::size_t a = 0; a < data.size(); ++a)
    if (window.starts[a] < 0 || after[a] < 0 || window.starts[a] > padded[a] - data[a] || after[a] != padded[a] - data[a] - window.starts[a])
      return std::nullopt;
  return window;
}

// The window written into its place in a tensor of shape `whole`, `value` (or zeros) around it.
void placeWindow(const reference::SliceWindow& window, const Dims& whole, std::byte* to, const std::byte* from, const std::byte* value, std::size_t size,
                 int threads) {
  std::size_t axis = window.rank, narrowed = 0;
  for (std::size_t a = 0; a < window.rank; ++a)
    if (window.extents[a] != whole[a] || window.steps[a] != 1) {
      axis = a;
      ++narrowed;
    }
  if (narrowed != 1 || window.steps[axis] != 1 || value != nullptr) {
    std::int64_t offset = 0;
    const StridedCopy copy = copyOf(window, whole, true, &offset);
    if (copy.elements() != elementCount(whole)) fillElements(to, value, elementCount(whole), size, threads);
    copy.run(to + offset * static_cast<std::int64_t>(size), from, size, threads);
    return;
  }
  // One axis is cut: every run of the result is written once.
  const std::span<const std::int64_t> all(whole);
  const std::int64_t outer = elementCount(all.first(axis)), inner = elementCount(all.subspan(axis + 1)), extent = whole[axis];
  const std::int64_t begin = window.starts[axis], length = window.extents[axis];
  const std::size_t unit = static_cast<std::size_t>(inner) * size;
  if (inner == 1) {
    parallelRows(outer, extent, threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t o = first; o < last; ++o) {
        std::byte* row = to + static_cast<std::size_t>(o * extent) * size;
        std::memset(row, 0, static_cast<std::size_t>(begin) * size);
        std::memcpy(row + static_cast<std::size_t>(begin) * size, from + static_cast<std::size_t>(o * length) * size, static_cast<std::size_t>(length) * size);
        std::memset(row + static_cast<std::size_t>(begin + length) * size, 0, static_cast<std::size_t>(extent - begin - length) * size);
      }
    });
    return;
  }
  parallelRows(outer * extent, inner, threads, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t at = row % extent - begin;
      std::byte* target = to + static_cast<std::size_t>(row) * unit;
      if (at >= 0 && at < length)
        std::memcpy(target, from + static_cast<std::size_t>(row / extent * length + at) * unit, unit);
      else
        std::memset(target, 0, unit);
    }
  });
}

bool paddable(const KernelSpec& spec) {
  const bool ranks = spec.inputs[0].dims.size() == spec.outputs[0].dims.size() && spec.outputs[0].dims.size() <= reference::kMaxRank;
  return ranks && spec.attrs.text("mode", "constant") == "constant";
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeSlice(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() < 3) return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("strided copy", [=, size = dtypeSize(spec.inputs[0].dtype)](const KernelCall& call) -> Status {
    const auto window = reference::sliceWindow(spec, call, call.inputs[0].dims, 1);
    if (!window || !fits(*window, call.outputs[0].dims)) return reference->run(call);
    std::int64_t offset = 0;
    const StridedCopy copy = copyOf(*window, call.inputs[0].dims, false, &offset);
    copy.run(resultBytes(call, 0), bytesOf(call, 0) + offset * static_cast<std::int64_t>(size), size, spec.threads);
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makeSliceGrad(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() < 4) return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("strided copy", [=, size = dtypeSize(spec.inputs[0].dtype)](const KernelCall& call) -> Status {
    const Dims& whole = call.outputs[0].dims;
    const auto window = reference::sliceWindow(spec, call, whole, 2);
    if (!window || !fits(*window, call.inputs[0].dims)) return reference->run(call);
    placeWindow(*window, whole, resultBytes(call, 0), bytesOf(call, 0), nullptr, size, spec.threads);
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makePad(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() < 2 || !paddable(spec)) return notTaken(spec, "another mode than constant");
  if (spec.inputPresent(2) && !takesOptional(spec, 2, 1, spec.inputs[0].dtype)) return notTaken(spec, "a constant of another type");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("strided copy", [=, size = dtypeSize(spec.inputs[0].dtype)](const KernelCall& call) -> Status {
    const Dims& padded = call.outputs[0].dims;
    const auto window = paddedWindow(call, call.inputs[0].dims, padded, 1, 3);
    if (!window) return reference->run(call);
    placeWindow(*window, padded, resultBytes(call, 0), bytesOf(call, 0), call.inputPresent(2) ? bytesOf(call, 2) : nullptr, size, spec.threads);
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makePadGrad(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() < 3 || !paddable(spec)) return notTaken(spec, "another mode than constant");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("strided copy", [=, size = dtypeSize(spec.inputs[0].dtype)](const KernelCall& call) -> Status {
    const auto window = paddedWindow(call, call.outputs[0].dims, call.inputs[0].dims, 2, 3);
    if (!window) return reference->run(call);
    std::int64_t offset = 0;
    const StridedCopy copy = copyOf(*window, call.inputs[0].dims, false, &offset);
    copy.run(resultBytes(call, 0), bytesOf(call, 0) + offset * static_cast<std::int64_t>(size), size, spec.threads);
    return {};
  });
}

}  // namespace stepscope::cpu
