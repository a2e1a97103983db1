// Expand (broadcasting), Tile, and TileGrad, which sums the copies.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status expandKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::size_t rank = y.dims.size();
  SS_TRY(checkRank(spec, rank));
  if (x.dims.size() > rank)
    return kernelError(spec, "input of rank " + std::to_string(x.dims.size()) + " above the result's");
  const Extents own = stridesOf(x.dims);
  Extents dims{}, from{};
  for (std::size_t a = 0; a < rank; ++a) {
    dims[a] = y.dims[a];
    const std::size_t lead = rank - x.dims.size();
    if (a < lead) continue;
    const std::int64_t extent = x.dims[a - lead];
    if (extent != y.dims[a] && extent != 1)
      return kernelError(spec, "shape " + dimsText(x.dims) + " does not broadcast to " + dimsText(y.dims));
    from[a] = extent == 1 ? 0 : own[a - lead];
  }
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    stridedCopy(rank, dims, static_cast<T*>(y.data), stridesOf(y.dims), static_cast<const T*>(x.data), from);
  });
  return {};
}

namespace {

Status checkTiles(const KernelSpec& spec, const Dims& one, const Dims& all) {
  SS_TRY(checkRank(spec, all.size()));
  bool fits = one.size() == all.size();
  for (std::size_t a = 0; fits && a < all.size(); ++a) fits = one[a] == 0 ? all[a] == 0 : all[a] % one[a] == 0;
  if (!fits) return kernelError(spec, "shape " + dimsText(one) + " does not tile " + dimsText(all));
  return {};
}

// Calls f(index in `all`, index in `one`) for every element of the tiled tensor, in row-major order.
template <typename F>
void forEachTile(const Dims& one, const Dims& all, F&& f) {
  const Extents strides = stridesOf(one);
  const std::int64_t count = elementCount(all);
  Extents index{};
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t source = 0;
    for (std::size_t a = 0; a < all.size(); ++a) source += index[a] % one[a] * strides[a];
    f(i, source);
    for (std::size_t a = all.size(); a-- > 0;) {
      if (++index[a] < all[a]) break;
      index[a] = 0;
    }
  }
}

}  // namespace

Status tileKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_TRY(checkTiles(spec, x.dims, y.dims));
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(x.data);
    T* to = static_cast<T*>(y.data);
    forEachTile(x.dims, y.dims, [&](std::int64_t i, std::int64_t source) { to[i] = from[source]; });
  });
  return {};
}

Status tileGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  SS_TRY(checkTiles(spec, dx.dims, dy.dims));
  return accumulate(spec, call, 0, [&](auto* sums, const auto* values) -> Status {
    using A = std::remove_pointer_t<decltype(sums)>;
    forEachTile(dx.dims, dy.dims, [&](std::int64_t i, std::int64_t place) { sums[place] = A(sums[place] + A(values[i])); });
    return {};
  });
}

}  // namespace stepscope::reference
