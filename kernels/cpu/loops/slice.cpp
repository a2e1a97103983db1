// Slice and its gradient: a window of one tensor is the other. Windows that do not fit are left to the reference kernel,
// which names mistakes.
#include <cstring>

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

// The window written into its place in a tensor of shape `whole`, zeros around it.
void placeWindow(const reference::SliceWindow& window, const Dims& whole, std::byte* to, const std::byte* from,
                 std::size_t size, int threads) {
  std::size_t axis = window.rank, narrowed = 0;
  for (std::size_t a = 0; a < window.rank; ++a)
    if (window.extents[a] != whole[a] || window.steps[a] != 1) {
      axis = a;
      ++narrowed;
    }
  if (narrowed != 1 || window.steps[axis] != 1) {
    std::int64_t offset = 0;
    const StridedCopy copy = copyOf(window, whole, true, &offset);
    if (copy.elements() != elementCount(whole)) fillElements(to, nullptr, elementCount(whole), size, threads);
    copy.run(to + offset * static_cast<std::int64_t>(size), from, size, threads);
    return;
  }
  // One axis is cut: every run of the result is written once.
  const std::span<const std::int64_t> all(whole);
  const std::int64_t outer = elementCount(all.first(axis)), inner = elementCount(all.subspan(axis + 1)),
                     extent = whole[axis];
  const std::int64_t begin = window.starts[axis], length = window.extents[axis];
  const std::size_t unit = static_cast<std::size_t>(inner) * size;
  if (inner == 1) {
    parallelRows(outer, extent, threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t o = first; o < last; ++o) {
        std::byte* row = to + static_cast<std::size_t>(o * extent) * size;
        std::memset(row, 0, static_cast<std::size_t>(begin) * size);
        std::memcpy(row + static_cast<std::size_t>(begin) * size, from + static_cast<std::size_t>(o * length) * size,
                    static_cast<std::size_t>(length) * size);
        std::memset(row + static_cast<std::size_t>(begin + length) * size, 0,
                    static_cast<std::size_t>(extent - begin - length) * size);
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
    placeWindow(*window, whole, resultBytes(call, 0), bytesOf(call, 0), size, spec.threads);
    return {};
  });
}

}  // namespace stepscope::cpu
