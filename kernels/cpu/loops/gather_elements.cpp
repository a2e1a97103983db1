// GatherElements and its gradient where indices and data agree in all axes but one; OneHot; Trilu.
#include <atomic>
#include <cstring>

#include "kernels/cpu/loops/strided.h"

namespace stepscope::cpu {
namespace {

// Data [outer, extent, inner], indices [outer, picks, inner].
struct Extents {
  std::int64_t outer = 1, extent = 0, picks = 0, inner = 1;
};

Result<Extents> extentsOf(const KernelSpec& spec, const Dims& data, const OperandSpec& indices) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  if (!axis || !takes(indices, DType::kI64) || indices.dims.size() != data.size())
    return notTaken(spec, "indices other than int64 of the rank of the data");
  const auto a = static_cast<std::size_t>(*axis);
  for (std::size_t i = 0; i < data.size(); ++i)
    if (i != a && data[i] != indices.dims[i]) return notTaken(spec, "indices that leave out part of the data");
  const std::span<const std::int64_t> all(data);
  return Extents{elementCount(all.first(a)), data[a], indices.dims[a], elementCount(all.subspan(a + 1))};
}

bool inRange(const std::int64_t* indices, std::int64_t count, std::int64_t extent) {
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < count; ++i)
    bad |= static_cast<std::int64_t>(indices[i] < -extent) | static_cast<std::int64_t>(indices[i] >= extent);
  return bad == 0;
}

// body(outer, first row of picks, behind) for the part of [begin, end) that belongs to each outer index.
template <typename Body>
void forEachOuter(const Extents& e, std::int64_t begin, std::int64_t end, Body&& body) {
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t outer = row / e.picks, behind = std::min(end, (outer + 1) * e.picks);
    body(outer, row, behind);
    row = behind;
  }
}

// visit(element of the data, element of the picks) for rows of picks of one outer index.
template <typename Visit>
void forEachElement(const Extents& e, const std::int64_t* indices, std::int64_t row, std::int64_t behind, Visit&& visit) {
  const auto place = [&](std::int64_t i) { return indices[i] + (indices[i] < 0 ? e.extent : 0); };
  if (e.inner == 1)
    for (; row < behind; ++row) visit(place(row), row);
  for (; row < behind; ++row)
    for (std::int64_t i = row * e.inner, column = 0; column < e.inner; ++i, ++column) visit(place(i) * e.inner + column, i);
}

// False: an index out of range, at which the thread stopped.
template <typename T>
bool pick(const Extents& e, const T* x, const std::int64_t* indices, T* y, int threads) {
  std::atomic<bool> good{true};
  parallelRows(e.outer * e.picks, e.inner, threads, [&](std::int64_t begin, std::int64_t end) {
    forEachOuter(e, begin, end, [&](std::int64_t outer, std::int64_t row, std::int64_t behind) {
      if (!inRange(indices + row * e.inner, (behind - row) * e.inner, e.extent)) {
        good = false;
        return;
      }
      const T* from = x + outer * e.extent * e.inner;
      forEachElement(e, indices, row, behind, [&](std::int64_t at, std::int64_t i) { y[i] = from[at]; });
    });
  });
  return good;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeGatherElements(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() != 2 ||
      elementCount(spec.outputs[0].dims) != elementCount(spec.inputs[1].dims))
    return notTaken(spec, "elements that cannot be copied");
  const std::size_t size = dtypeSize(spec.inputs[0].dtype);
  if (size != 4 && size != 8) return notTaken(spec, "elements of 1 or 2 bytes");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.inputs[0].dims, spec.inputs[1]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("element copies", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const auto* indices = input<std::int64_t>(call, 1);
    const bool good = size == 4 ? pick(e, input<std::uint32_t>(call, 0), indices, output<std::uint32_t>(call, 0), threads)
                                : pick(e, input<std::uint64_t>(call, 0), indices, output<std::uint64_t>(call, 0), threads);
    return good ? Status{} : reference->run(call);
  });
}

// Planes of the data are apart, so each belongs to one thread, which adds in the order of the indices.
Result<std::unique_ptr<Kernel>> makeGatherElementsGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs.size() < 2 ||
      elementCount(spec.inputs[0].dims) != elementCount(spec.inputs[1].dims))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.outputs[0].dims, spec.inputs[1]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("element sums", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const auto* indices = input<std::int64_t>(call, 1);
    std::atomic<bool> good{true};
    const float* dy = input(call, 0);
    float* dx = output(call, 0);
    parallelRows(e.outer, e.extent * e.inner, threads, [&](std::int64_t begin, std::int64_t end) {
      std::fill(dx + begin * e.extent * e.inner, dx + end * e.extent * e.inner, 0.0F);
      forEachOuter(e, begin * e.picks, end * e.picks, [&](std::int64_t outer, std::int64_t row, std::int64_t behind) {
        if (!inRange(indices + row * e.inner, (behind - row) * e.inner, e.extent)) {
          good = false;
          return;
        }
        float* to = dx + outer * e.extent * e.inner;
        forEachElement(e, indices, row, behind, [&](std::int64_t at, std::int64_t i) { to[at] += dy[i]; });
      });
    });
    return good ? Status{} : reference->run(call);
  });
}

Result<std::unique_ptr<Kernel>> makeOneHot(const KernelSpec& spec) {
  const bool given =
      spec.inputs.size() == 3 && takesInput(spec, 0, DType::kI64) && takesScalar(spec, 1) && !spec.outputs.empty();
  if (!given || spec.outputs[0].dtype == DType::kString || !takesOutput(spec, 0, spec.outputs[0].dtype) ||
      !takesInput(spec, 2, spec.outputs[0].dtype) || elementCount(spec.inputs[2].dims) != 2 ||
      dtypeSize(spec.outputs[0].dtype) < 4)
    return notTaken(spec, "operands other than int64 indices and values of 4 or 8 bytes");
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(spec.inputs[0].dims.size()) + 1);
  if (!axis || spec.outputs[0].dims.size() != spec.inputs[0].dims.size() + 1) return notTaken(spec, "an axis out of range");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(spec.inputs[0].dims);
  const std::int64_t outer = elementCount(all.first(a)), depth = spec.outputs[0].dims[a],
                     inner = elementCount(all.subspan(a));
  if (outer * depth * inner != elementCount(spec.outputs[0].dims)) return notTaken(spec, "a result of another size");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel(
      "fill", [=, size = dtypeSize(spec.outputs[0].dtype), threads = spec.threads](const KernelCall& call) -> Status {
        if (elementAsDouble(call.inputs[1], 0) != static_cast<double>(depth)) return reference->run(call);
        fillElements(resultBytes(call, 0), bytesOf(call, 2), outer * depth * inner, size, threads);
        for (std::int64_t i = 0; i < outer * inner; ++i) {
          std::int64_t k = input<std::int64_t>(call, 0)[i];
          if (k < 0) k += depth;
          if (k >= 0 && k < depth)
            std::memcpy(resultBytes(call, 0) + static_cast<std::size_t>((i / inner * depth + k) * inner + i % inner) * size,
                        bytesOf(call, 2) + size, size);
        }
        return {};
      });
}

Result<std::unique_ptr<Kernel>> makeTrilu(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs[0].dims != spec.outputs[0].dims || spec.inputs[0].dims.size() < 2 ||
      (spec.inputPresent(1) && !takesScalar(spec, 1)))
    return notTaken(spec, "operands other than matrices");
  const Dims& dims = spec.inputs[0].dims;
  const std::int64_t columns = dims.back(), height = dims[dims.size() - 2], rows = elementCount(dims) / columns;
  const bool upper = spec.attrs.integer("upper", 1) != 0;
  return makeBodyKernel(
      "row copies", [=, size = dtypeSize(spec.inputs[0].dtype), threads = spec.threads](const KernelCall& call) -> Status {
        const std::int64_t given = call.inputPresent(1) ? elementAsInt(call.inputs[1], 0) : 0;
        const std::int64_t k = std::clamp(given, -height - 1, columns + 1);  // beyond, nothing changes
        const std::byte* x = bytesOf(call, 0);
        std::byte* y = resultBytes(call, 0);
        parallelRows(rows, columns, threads, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            // Columns [0, border) are below the diagonal, the others on or above it; the lower triangle includes the
            // diagonal itself.
            const std::int64_t border = std::clamp<std::int64_t>(row % height + k + (upper ? 0 : 1), 0, columns);
            const auto at = static_cast<std::size_t>(row * columns) * size, low = static_cast<std::size_t>(border) * size,
                       all = static_cast<std::size_t>(columns) * size;
            const std::size_t keepBegin = upper ? low : 0, keepEnd = upper ? all : low;
            if (x != y) std::memcpy(y + at + keepBegin, x + at + keepBegin, keepEnd - keepBegin);
            std::memset(y + at + (upper ? 0 : low), 0, upper ? low : all - low);
          }
        });
        return {};
      });
}

}  // namespace stepscope::cpu
