// Transpose: y[i_perm] = x[i]; without perm the axes are reversed.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status transposeKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::size_t rank = x.dims.size();
  SS_TRY(checkRank(spec, rank));
  const AttrValue* attr = spec.attrs.find("perm");
  const auto* perm = attr != nullptr ? std::get_if<std::vector<std::int64_t>>(attr) : nullptr;
  if (perm != nullptr && perm->size() != rank)
    return kernelError(spec, "perm of another rank than shape " + dimsText(x.dims));
  const Extents own = stridesOf(x.dims);
  Extents dims{}, from{};
  unsigned seen = 0;
  for (std::size_t a = 0; a < rank; ++a) {
    const auto source = static_cast<std::size_t>(perm != nullptr ? (*perm)[a] : static_cast<std::int64_t>(rank - 1 - a));
    if (source >= rank || (seen >> source & 1u) != 0)
      return kernelError(spec, "perm is not a permutation of the axes of " + dimsText(x.dims));
    seen |= 1u << source;
    dims[a] = x.dims[source];
    from[a] = own[source];
  }
  SS_TRY(checkOutput(spec, call, 0, dims.data(), rank));
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    stridedCopy(rank, dims, static_cast<T*>(y.data), stridesOf(y.dims), static_cast<const T*>(x.data), from);
  });
  return {};
}

}  // namespace stepscope::reference
