// Unique: the different slices along an axis (without it: elements) with first positions, inverse and counts. Allocates, as
// its result is sized by the data.
#include <numeric>
#include <vector>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

// Orders slices by their elements; NaN after all numbers, as numpy sorts.
template <typename T>
int compareElements(const T& a, const T& b) {
  if constexpr (!std::is_same_v<T, std::string>) {
    const bool aNan = a != a, bNan = b != b;
    if (aNan || bNan) return aNan == bNan ? 0 : aNan ? 1 : -1;
  }
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

Status uniqueKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const bool flat = !spec.attrs.has("axis"), sorted = spec.attrs.integer("sorted", 1) != 0;
  std::size_t axis = 0;
  std::int64_t outer = 1, extent = x.elements(), inner = 1;
  if (!flat) {
    const auto normal = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(x.dims.size()));
    if (!normal) return kernelError(spec, "axis out of range for shape " + dimsText(x.dims));
    axis = static_cast<std::size_t>(*normal);
    outer = product(x.dims, 0, axis);
    extent = x.dims[axis];
    inner = product(x.dims, axis + 1, x.dims.size());
  }
  Status status;
  dispatchAll(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* values = static_cast<const T*>(x.data);
    const auto compare = [&](std::int64_t a, std::int64_t b) {
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < inner; ++i)
          if (const int order = compareElements(values[(o * extent + a) * inner + i], values[(o * extent + b) * inner + i]))
            return order;
      return 0;
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return compare(a, b) < 0; });
    std::vector<std::int64_t> first, counts, inverse(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k == 0 || compare(order[k - 1], order[k]) != 0) {
        first.push_back(order[k]);  // the sort is stable: the lowest position of its group
        counts.push_back(0);
      }
      ++counts.back();
      inverse[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(first.size()) - 1;
    }
    std::vector<std::int64_t> rank(first.size());  // groups in the order of the result
    std::iota(rank.begin(), rank.end(), std::int64_t{0});
    if (!sorted)
      std::sort(rank.begin(), rank.end(), [&](std::int64_t a, std::int64_t b) {
        return first[static_cast<std::size_t>(a)] < first[static_cast<std::size_t>(b)];
      });
    const auto count = static_cast<std::int64_t>(first.size());
    Dims dims{count};
    if (!flat) {
      dims = x.dims;
      dims[axis] = count;
    }
    status = prepareOutput(spec, call, 0, std::move(dims));
    for (std::size_t i = 1; i < 4 && status; ++i)
      if (i < spec.outputs.size() && spec.outputs[i].present())
        status = prepareOutput(spec, call, i, {i == 2 ? extent : count});
    if (!status) return;
    const auto present = [&](std::size_t i) { return i < spec.outputs.size() && spec.outputs[i].present(); };
    const auto ints = [&](std::size_t i) { return static_cast<std::int64_t*>(call.outputs[i].data); };
    std::vector<std::int64_t> place(first.size());
    for (std::int64_t k = 0; k < count; ++k) {
      const auto group = static_cast<std::size_t>(rank[static_cast<std::size_t>(k)]);
      place[group] = k;
      if (present(1)) ints(1)[k] = first[group];
      if (present(3)) ints(3)[k] = counts[group];
      for (std::int64_t o = 0; o < outer; ++o)
        copyRun(static_cast<T*>(call.outputs[0].data) + (o * count + k) * inner,
                values + (o * extent + first[group]) * inner, inner);
    }
    if (present(2))
      for (std::int64_t k = 0; k < extent; ++k)
        ints(2)[k] = place[static_cast<std::size_t>(inverse[static_cast<std::size_t>(k)])];
  });
  return status;
}

}  // namespace stepscope::reference
