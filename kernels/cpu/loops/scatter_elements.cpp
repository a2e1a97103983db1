// ScatterElements where indices and data agree in all axes but one. Planes of the data are apart, and so are columns within
// a plane: each belongs to one thread, which takes the updates in their order. An index out of range is left to the
// reference kernel, which names it.
#include <atomic>

#include "kernels/cpu/loops/scatter_combine.h"
#include "kernels/cpu/loops/strided.h"

namespace stepscope::cpu {
namespace {

// Data [outer, extent, inner]; indices and updates [outer, picks, inner].
struct Planes {
  std::int64_t outer = 1, extent = 0, picks = 0, inner = 1;
};

Result<Planes> planesOf(const KernelSpec& spec) {
  const Dims &data = spec.inputs[0].dims, &indices = spec.inputs[1].dims;
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  if (!axis || !takesInput(spec, 1, DType::kI64) || indices.size() != data.size() || indices != spec.inputs[2].dims)
    return notTaken(spec, "indices other than int64 of the rank of the data");
  const auto a = static_cast<std::size_t>(*axis);
  for (std::size_t i = 0; i < data.size(); ++i)
    if (i != a && data[i] != indices[i]) return notTaken(spec, "indices that leave out part of the data");
  const std::span<const std::int64_t> all(data);
  return Planes{elementCount(all.first(a)), data[a], indices[a], elementCount(all.subspan(a + 1))};
}

bool inRange(const Planes& p, const std::int64_t* indices, int threads) {
  std::atomic<bool> good{true};
  parallelElements(p.outer * p.picks * p.inner, threads, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t bad = 0;
    for (std::int64_t i = begin; i < end; ++i)
      bad |= static_cast<std::int64_t>(indices[i] < -p.extent) | static_cast<std::int64_t>(indices[i] >= p.extent);
    if (bad != 0) good = false;
  });
  return good;
}

// Columns [from, to) of one plane.
template <Scatter kHow, typename T>
void scatterPlane(const Planes& p, const T* x, const std::int64_t* indices, const T* updates, T* y, std::int64_t from,
                  std::int64_t to) {
  if (p.inner == 1) {
    if (x != y) std::copy_n(x, p.extent, y);
    for (std::int64_t pick = 0; pick < p.picks; ++pick)
      combineElement<kHow>(y[indices[pick] + (indices[pick] < 0 ? p.extent : 0)], updates[pick]);
    return;
  }
  if (x != y)
    for (std::int64_t row = 0; row < p.extent; ++row)
      std::copy(x + row * p.inner + from, x + row * p.inner + to, y + row * p.inner + from);
  for (std::int64_t pick = 0; pick < p.picks; ++pick)
    for (std::int64_t column = from, i = pick * p.inner + from; column < to; ++column, ++i)
      combineElement<kHow>(y[(indices[i] < 0 ? indices[i] + p.extent : indices[i]) * p.inner + column], updates[i]);
}

template <Scatter kHow, typename T>
void scatterAll(const Planes& p, const KernelCall& call, int threads) {
  const auto* indices = input<std::int64_t>(call, 1);
  const T *x = input<T>(call, 0), *updates = input<T>(call, 2);
  T* y = output<T>(call, 0);
  const auto plane = [&](std::int64_t o, std::int64_t from, std::int64_t to) {
    scatterPlane<kHow>(p, x + o * p.extent * p.inner, indices + o * p.picks * p.inner, updates + o * p.picks * p.inner,
                       y + o * p.extent * p.inner, from, to);
  };
  const std::int64_t height = p.extent + p.picks;
  if (p.outer >= threads)
    parallelRows(p.outer, height * p.inner, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) plane(o, 0, p.inner);
    });
  else
    parallelRows(p.inner, height * p.outer, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = 0; o < p.outer; ++o) plane(o, begin, end);
    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeScatterElements(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() != 3 || !takesInput(spec, 2, spec.inputs[0].dtype) ||
      elementCount(spec.outputs[0].dims) != elementCount(spec.inputs[0].dims))
    return notTaken(spec, "elements that cannot be copied");
  const auto how = scatterOf(spec.attrs.text("reduction", "none"));
  const std::size_t size = dtypeSize(spec.inputs[0].dtype);
  if (!how || (*how == Scatter::kReplace ? size < 4 : spec.inputs[0].dtype != DType::kF32))
    return notTaken(spec, "elements of 1 or 2 bytes, or sums other than float32");
  SS_ASSIGN(const Planes p, planesOf(spec));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("element copies", [=, how = *how, threads = spec.threads](const KernelCall& call) -> Status {
    if (!inRange(p, input<std::int64_t>(call, 1), threads)) return reference->run(call);
    if (how == Scatter::kReplace && size == 8)
      scatterAll<Scatter::kReplace, std::uint64_t>(p, call, threads);
    else
      withScatter(how, [&](auto tag) { scatterAll<decltype(tag)::value, float>(p, call, threads); });
    return {};
  });
}

}  // namespace stepscope::cpu
