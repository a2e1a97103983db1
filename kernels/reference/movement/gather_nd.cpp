// GatherND: y[b, t] = x[b, indices[b, t]] (runs of the axes that the tuples leave); GatherNDGrad adds the runs back.
#include "kernels/reference/movement/element_walk.h"

namespace stepscope::reference {
namespace {

Result<std::int64_t> runOf(const KernelSpec& spec, const Dims& data, const TensorView& indices, const Dims& picked) {
  const std::int64_t batchDims = spec.attrs.integer("batch_dims", 0);
  const std::size_t rank = indices.dims.size();
  if (rank == 0 || batchDims < 0 || batchDims >= static_cast<std::int64_t>(rank) || indices.dims.back() < 0 ||
      indices.dims.back() + batchDims > static_cast<std::int64_t>(data.size()))
    return kernelError(spec, "indices of shape " + dimsText(indices.dims) + " do not fit shape " + dimsText(data));
  const std::int64_t run = product(data, static_cast<std::size_t>(indices.dims.back() + batchDims), data.size());
  if (product(indices.dims, 0, rank - 1) * run != elementCount(picked))
    return kernelError(spec, "indices of shape " + dimsText(indices.dims) + " do not pick shape " + dimsText(picked) +
                                 " from " + dimsText(data));
  return run;
}

}  // namespace

Status gatherNdKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  SS_ASSIGN(const std::int64_t run, runOf(spec, x.dims, indices, y.dims));
  const auto batchDims = static_cast<std::size_t>(spec.attrs.integer("batch_dims", 0));
  Status status;
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    status = walkTuples(spec, x.dims, indices, batchDims, [&](std::int64_t place, std::int64_t t) {
      copyRun(static_cast<T*>(y.data) + t * run, static_cast<const T*>(x.data) + place, run);
    });
  });
  return status;
}

Status gatherNdGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &indices = call.inputs[1], &dx = call.outputs[0];
  SS_ASSIGN(const std::int64_t run, runOf(spec, dx.dims, indices, dy.dims));
  const auto batchDims = static_cast<std::size_t>(spec.attrs.integer("batch_dims", 0));
  return accumulate(spec, call, 0, [&](auto* sums, const auto* values) -> Status {
    using A = std::remove_pointer_t<decltype(sums)>;
    return walkTuples(spec, dx.dims, indices, batchDims, [&](std::int64_t place, std::int64_t t) {
      for (std::int64_t i = 0; i < run; ++i) sums[place + i] = A(sums[place + i] + A(values[t * run + i]));
    });
  });
}

}  // namespace stepscope::reference
