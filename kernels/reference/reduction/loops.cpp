#include "kernels/reference/reduction/loops.h"

#include <fmt/format.h>

namespace stepscope::reference {

Result<ReducePlan> planReduction(std::span<const std::int64_t> dims, std::uint64_t mask) {
  ReducePlan plan;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (mask >> i & 1)
      plan.count *= dims[i];
    else
      plan.outputs *= dims[i];
  }
  // Merged back to front; the arrays are filled from the end and shifted afterwards.
  Axes kept, reduced;
  const auto prepend = [](Axes& axes, std::int64_t extent, std::int64_t stride) {
    ++axes.rank;
    axes.extents[Axes::kMax - axes.rank] = extent;
    axes.strides[Axes::kMax - axes.rank] = stride;
  };
  std::int64_t stride = 1;
  bool first = true, previousReduced = false;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    const bool isReduced = (mask >> i & 1) != 0;
    Axes& axes = isReduced ? reduced : kept;
    if (!first && isReduced == previousReduced) {
      axes.extents[Axes::kMax - axes.rank] *= dims[i];
    } else {
      if (axes.rank == Axes::kMax) return unsupported("reduction: too many alternations of kept and reduced axes");
      prepend(axes, dims[i], stride);
    }
    stride *= dims[i];
    first = false;
    previousReduced = isReduced;
  }
  if (kept.rank > 0 && kept.strides[Axes::kMax - 1] == 1) {
    plan.inner = kept.extents[Axes::kMax - 1];
    for (int i = Axes::kMax - 1; i > Axes::kMax - kept.rank; --i) {
      kept.extents[i] = kept.extents[i - 1];
      kept.strides[i] = kept.strides[i - 1];
    }
    --kept.rank;
  }
  for (const auto& [from, to] : {std::pair{&kept, &plan.kept}, std::pair{&reduced, &plan.reduced}}) {
    to->rank = from->rank;
    for (int i = 0; i < from->rank; ++i) {
      to->extents[i] = from->extents[Axes::kMax - from->rank + i];
      to->strides[i] = from->strides[Axes::kMax - from->rank + i];
    }
  }
  return plan;
}

Result<std::uint64_t> reducedAxes(const KernelSpec& spec, const KernelCall& call, std::size_t input,
                                  std::span<const std::int64_t> dims) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  if (rank > 64) return unsupported(fmt::format("{}: rank {}; at most 64", spec.op, rank));
  const std::int64_t given = call.inputPresent(input) ? call.inputs[input].elements() : 0;
  if (given == 0) {
    if (spec.attrs.integer("noop_with_empty_axes", 0) != 0) return 0;
    return rank == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rank) - 1;
  }
  std::uint64_t mask = 0;
  for (std::int64_t i = 0; i < given; ++i) {
    const std::int64_t axis = elementAsInt(call.inputs[input], i);
    const auto normal = normalizeAxis(axis, rank);
    if (!normal) return invalid(fmt::format("{}: axis {} out of range for shape {}", spec.op, axis, dimsText(dims)));
    mask |= std::uint64_t{1} << *normal;
  }
  return mask;
}

Result<Lines> linesOf(const KernelSpec& spec, std::span<const std::int64_t> dims, std::int64_t axis) {
  const auto normal = normalizeAxis(axis, static_cast<std::int64_t>(dims.size()));
  if (!normal) {
    if (dims.empty() && (axis == 0 || axis == -1)) return Lines{};  // a scalar is a line of one element
    return invalid(fmt::format("{}: axis {} out of range for shape {}", spec.op, axis, dimsText(dims)));
  }
  const auto at = static_cast<std::size_t>(*normal);
  return Lines{elementCount(dims.first(at)), dims[at], elementCount(dims.subspan(at + 1))};
}

tl::unexpected<Error> badType(const KernelSpec& spec, DType dtype) {
  return unsupported(fmt::format("{}: elements of type {}; not a type of this op", spec.op, dtypeName(dtype)));
}

Status expectElements(const KernelSpec& spec, std::string_view what, const TensorView& view, std::int64_t expected) {
  if (view.elements() == expected) return {};
  return invalid(fmt::format("{}: {} has shape {}; expected {} elements", spec.op, what, dimsText(view.dims), expected));
}

}  // namespace stepscope::reference
