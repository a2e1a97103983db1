// PadAndUnflatten adds rows at flat positions of zeros; FlattenAndUnpad picks them again.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

// `full` is [d0, d1, rest...], `rows` [n, rest...]. Calls f(row number, flat position) for each.
template <typename F>
Status walkRows(const KernelSpec& spec, const Dims& full, const Dims& rows, const TensorView& indices, F&& f) {
  SS_TRY(checkIndexType(spec, indices));
  bool fits = full.size() >= 2 && rows.size() + 1 == full.size() && indices.elements() == rows[0];
  for (std::size_t a = 1; fits && a < rows.size(); ++a) fits = rows[a] == full[a + 1];
  if (!fits)
    return kernelError(
        spec, "rows " + dimsText(rows) + " and indices " + dimsText(indices.dims) + " do not fit shape " + dimsText(full));
  const std::int64_t places = full[0] * full[1];
  Status status;
  withIndices(indices, [&](const auto* at) {
    for (std::int64_t k = 0; k < rows[0]; ++k) {
      if (at[k] < -places || at[k] >= places) {
        status = indexError(spec, at[k], k, places);
        return;
      }
      f(k, at[k] < 0 ? at[k] + places : at[k]);
    }
  });
  return status;
}

}  // namespace

Status padAndUnflattenKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &extents = call.inputs[2], &y = call.outputs[0];
  if (extents.elements() != 2 || y.dims.size() < 2 || elementAsInt(extents, 0) != y.dims[0] ||
      elementAsInt(extents, 1) != y.dims[1])
    return kernelError(spec, "extents differ from the planned shape " + dimsText(y.dims));
  const std::int64_t run = product(y.dims, 2, y.dims.size());
  return accumulate(spec, call, 0, [&](auto* sums, const auto* values) -> Status {
    using A = std::remove_pointer_t<decltype(sums)>;
    return walkRows(spec, y.dims, x.dims, call.inputs[1], [&](std::int64_t row, std::int64_t place) {
      for (std::int64_t i = 0; i < run; ++i) sums[place * run + i] = A(sums[place * run + i] + A(values[row * run + i]));
    });
  });
}

Status flattenAndUnpadKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (x.dims.size() < 2) return kernelError(spec, "shape " + dimsText(x.dims) + "; expected at least two axes");
  if (call.outputPresent(1)) std::copy_n(x.dims.begin(), 2, static_cast<std::int64_t*>(call.outputs[1].data));
  const std::int64_t run = product(x.dims, 2, x.dims.size());
  Status status;
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    status = walkRows(spec, x.dims, y.dims, call.inputs[1], [&](std::int64_t row, std::int64_t place) {
      copyRun(static_cast<T*>(y.data) + row * run, static_cast<const T*>(x.data) + place * run, run);
    });
  });
  return status;
}

}  // namespace stepscope::reference
