// Gather: y[o, k, i] = x[o, indices[k], i]; GatherGrad adds the runs back, duplicates in the order of the indices.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

struct GatherExtents {
  std::int64_t outer = 1, extent = 0, inner = 1, picks = 0;
};

// `data` is the shape that is gathered from, `picked` that of the result.
Result<GatherExtents> extentsOf(const KernelSpec& spec, const Dims& data, const TensorView& indices, const Dims& picked) {
  SS_TRY(checkIndexType(spec, indices));
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  if (!axis) return kernelError(spec, "axis out of range for shape " + dimsText(data));
  const auto a = static_cast<std::size_t>(*axis);
  const GatherExtents e{product(data, 0, a), data[a], product(data, a + 1, data.size()), indices.elements()};
  if (elementCount(picked) != e.outer * e.picks * e.inner)
    return kernelError(spec, "shape " + dimsText(picked) + " is not what indices " + dimsText(indices.dims) + " pick from " +
                                 dimsText(data));
  return e;
}

template <typename I>
Status checkIndices(const KernelSpec& spec, const I* indices, const GatherExtents& e) {
  for (std::int64_t k = 0; k < e.picks; ++k)
    if (indices[k] < -e.extent || indices[k] >= e.extent) return indexError(spec, indices[k], k, e.extent);
  return {};
}

}  // namespace

Status gatherKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  SS_ASSIGN(const GatherExtents e, extentsOf(spec, x.dims, indices, y.dims));
  Status status;
  withIndices(indices, [&](const auto* at) {
    status = checkIndices(spec, at, e);
    if (!status) return;
    dispatchBySize(x.dtype, [&](auto tag) {
      using T = decltype(tag);
      T* to = static_cast<T*>(y.data);
      for (std::int64_t o = 0; o < e.outer; ++o)
        for (std::int64_t k = 0; k < e.picks; ++k, to += e.inner) {
          const std::int64_t row = at[k] < 0 ? at[k] + e.extent : at[k];
          copyRun(to, static_cast<const T*>(x.data) + (o * e.extent + row) * e.inner, e.inner);
        }
    });
  });
  return status;
}

Status gatherGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &indices = call.inputs[1], &dx = call.outputs[0];
  SS_ASSIGN(const GatherExtents e, extentsOf(spec, dx.dims, indices, dy.dims));
  return accumulate(
      spec, call, 0,
      [&](auto* sums, const auto* values) -> Status {
        using A = std::remove_pointer_t<decltype(sums)>;
        Status status;
        withIndices(indices, [&](const auto* at) {
          status = checkIndices(spec, at, e);
          if (!status) return;
          for (std::int64_t o = 0; o < e.outer; ++o)
            for (std::int64_t k = 0; k < e.picks; ++k, values += e.inner) {
              const std::int64_t row = at[k] < 0 ? at[k] + e.extent : at[k];
              A* to = sums + (o * e.extent + row) * e.inner;
              for (std::int64_t i = 0; i < e.inner; ++i) to[i] = A(to[i] + A(values[i]));
            }
        });
        return status;
      },
      3);
}

}  // namespace stepscope::reference
