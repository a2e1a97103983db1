// The loops that reductions and normalisations share. Nothing here allocates on the heap.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/kernel.h"
#include "kernels/reference/numbers.h"

namespace stepscope::reference {

// Some axes of a row-major tensor: extents and strides in elements, outermost first.
struct Axes {
  static constexpr int kMax = 32;
  int rank = 0;
  std::array<std::int64_t, kMax> extents{}, strides{};
};

// Calls visit(offset) for every position of `axes`, row-major, starting from `base`.
template <typename F>
void forEachOffset(const Axes& axes, std::int64_t base, F&& visit, int axis = 0) {
  if (axis == axes.rank) return visit(base);
  const std::int64_t extent = axes.extents[axis], stride = axes.strides[axis];
  if (axis + 1 == axes.rank) {
    for (std::int64_t i = 0; i < extent; ++i) visit(base + i * stride);
    return;
  }
  for (std::int64_t i = 0; i < extent; ++i) forEachOffset(axes, base + i * stride, visit, axis + 1);
}

// The iteration space of a reduction of a row-major tensor, neighbouring axes of one kind merged. The last kept axis is
// `inner` when nothing behind it is reduced (else 1), so that a reduction of leading axes runs along memory.
struct ReducePlan {
  Axes kept, reduced;
  std::int64_t inner = 1;
  std::int64_t outputs = 1;  // elements of the result
  std::int64_t count = 1;    // elements that make one result
};

// Bit i of `mask` set = axis i is reduced. Error: more alternations of kept and reduced axes than Axes holds.
Result<ReducePlan> planReduction(std::span<const std::int64_t> dims, std::uint64_t mask);

// The mask for the `axes` input of a Reduce op at position `input` (absent or empty: all axes, or none with
// noop_with_empty_axes). Errors: an axis out of range, more than 64 axes.
Result<std::uint64_t> reducedAxes(const KernelSpec& spec, const KernelCall& call, std::size_t input,
                                  std::span<const std::int64_t> dims);

inline constexpr std::int64_t kBlock = 64;  // results that are accumulated side by side

// visit(begin, n, at): results [begin, begin + n), n <= kBlock, whose elements start at x[at + j] for result begin + j.
template <typename F>
void forEachResultBlock(const ReducePlan& plan, F&& visit) {
  if (plan.outputs == 0) return;
  std::int64_t result = 0;
  forEachOffset(plan.kept, 0, [&](std::int64_t base) {
    for (std::int64_t at = 0; at < plan.inner; at += kBlock)
      visit(result + at, plan.inner - at < kBlock ? plan.inner - at : kBlock, base + at);
    result += plan.inner;
  });
}

// A tensor seen as [outer, axis, inner].
struct Lines {
  std::int64_t outer = 1, axis = 1, inner = 1;
};
// Error: `axis` out of range for dims.
Result<Lines> linesOf(const KernelSpec& spec, std::span<const std::int64_t> dims, std::int64_t axis);

// Calls visit(offset of the first element); elements of a line are `inner` apart.
template <typename F>
void forEachLine(const Lines& lines, F&& visit) {
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) visit(o * lines.axis * lines.inner + i);
}

// "Softmax: float elements expected, found int32".
tl::unexpected<Error> badType(const KernelSpec& spec, DType dtype);
// Error "<op>: <what> has 3 elements; expected 4" when they disagree.
Status expectElements(const KernelSpec& spec, std::string_view what, const TensorView& view, std::int64_t expected);

// Element `i` of a float tensor of type T, as double.
template <typename T>
const T* readAs(const TensorView& view) {
  return static_cast<const T*>(view.data);
}
template <typename T>
T* writeAs(const TensorView& view) {
  return static_cast<T*>(view.data);
}

}  // namespace stepscope::reference
