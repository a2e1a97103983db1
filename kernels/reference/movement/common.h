// Parts that the movement kernels share: elements by size, strided copies, index checks, accumulation of gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/kernel.h"

namespace stepscope::reference {

// The reader refuses tensors of a higher rank, so index arithmetic needs no heap.
inline constexpr std::size_t kMaxRank = 8;
using Extents = std::array<std::int64_t, kMaxRank>;

// "Gather: <message>" as an error.
tl::unexpected<Error> kernelError(const KernelSpec& spec, std::string message);
// Refuses a rank above kMaxRank.
Status checkRank(const KernelSpec& spec, std::size_t rank);
// Refuses tensors of indices that are neither int32 nor int64.
Status checkIndexType(const KernelSpec& spec, const TensorView& indices);
// "index 9 at position 3 out of range; valid -5..4".
tl::unexpected<Error> indexError(const KernelSpec& spec, std::int64_t value, std::int64_t position, std::int64_t extent);
// Fails when the planned extents of output `i` are not `dims`, which the contents at run time ask for.
Status checkOutput(const KernelSpec& spec, const KernelCall& call, std::size_t i, const std::int64_t* dims,
                   std::size_t rank);
// Output i of extents `dims`: memory from the call when they were not known, a check when they were.
Status prepareOutput(const KernelSpec& spec, const KernelCall& call, std::size_t i, Dims dims);

// Row-major strides in elements, without the heap.
Extents stridesOf(const Dims& dims);

// Number of elements on axes [begin, end).
std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end);

// Calls f with a value of the unsigned type (or std::string) that has the size of one element: for kernels that only move.
template <typename F>
void dispatchBySize(DType dtype, F&& f) {
  if (dtype == DType::kString) {
    f(std::string{});
    return;
  }
  switch (dtypeSize(dtype)) {
    case 1: f(std::uint8_t{}); break;
    case 2: f(std::uint16_t{}); break;
    case 4: f(std::uint32_t{}); break;
    case 8: f(std::uint64_t{}); break;
    default: break;
  }
}

// Calls f with the indices as int32 or int64 pointer; the type was checked.
template <typename F>
void withIndices(const TensorView& indices, F&& f) {
  if (indices.dtype == DType::kI32)
    f(static_cast<const std::int32_t*>(indices.data));
  else
    f(static_cast<const std::int64_t*>(indices.data));
}

// Copies `count` elements side by side; strings too.
template <typename T>
void copyRun(T* to, const T* from, std::int64_t count) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else {
    std::copy_n(from, count, to);
  }
}

// Calls f(offset in the one, offset in the other) for every index of `dims`, row-major; no extent is 0.
template <typename F>
void forEachOffset(std::size_t rank, const Extents& dims, const Extents& oneStrides, const Extents& otherStrides, F&& f) {
  Extents index{};
  std::int64_t one = 0, other = 0;
  while (true) {
    f(one, other);
    std::size_t a = rank;
    while (a > 0) {
      --a;
      one += oneStrides[a];
      other += otherStrides[a];
      if (++index[a] < dims[a]) break;
      one -= oneStrides[a] * dims[a];
      other -= otherStrides[a] * dims[a];
      index[a] = 0;
      if (a == 0) return;
    }
    if (rank == 0) return;
  }
}

// to[sum i_a*toStrides[a]] = from[sum i_a*fromStrides[a]] for every index of `dims`. Strides in elements, may be 0 or
// negative.
template <typename T>
void stridedCopy(std::size_t rank, Extents dims, T* to, Extents toStrides, const T* from, Extents fromStrides) {
  for (std::size_t a = 0; a < rank; ++a)
    if (dims[a] == 0) return;
  // Neighbouring axes that both sides walk as one are merged, so that runs are as long as they can be.
  std::size_t merged = 0;
  for (std::size_t a = 0; a < rank; ++a) {
    if (dims[a] == 1) continue;
    if (merged > 0 && toStrides[merged - 1] == toStrides[a] * dims[a] &&
        fromStrides[merged - 1] == fromStrides[a] * dims[a]) {
      dims[merged - 1] *= dims[a];
      toStrides[merged - 1] = toStrides[a];
      fromStrides[merged - 1] = fromStrides[a];
      continue;
    }
    dims[merged] = dims[a];
    toStrides[merged] = toStrides[a];
    fromStrides[merged] = fromStrides[a];
    ++merged;
  }
  if (merged == 0) {
    *to = *from;
    return;
  }
  // Where the source is contiguous along another axis than the result, both are walked in tiles that stay in the cache.
  std::size_t tiled = merged;
  for (std::size_t a = 0; a + 1 < merged; ++a)
    if (fromStrides[a] == 1 && toStrides[merged - 1] == 1 && fromStrides[merged - 1] > 1) tiled = a;
  if (tiled < merged) {
    constexpr std::int64_t kTile = 16;
    const std::size_t inner = merged - 1;
    const std::int64_t rows = dims[tiled], columns = dims[inner], toRow = toStrides[tiled], fromColumn = fromStrides[inner];
    dims[tiled] = dims[inner] = 1;
    forEachOffset(merged, dims, toStrides, fromStrides, [&](std::int64_t toOffset, std::int64_t fromOffset) {
      for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
        for (std::int64_t c0 = 0; c0 < columns; c0 += kTile)
          for (std::int64_t r = r0; r < std::min(r0 + kTile, rows); ++r)
            for (std::int64_t c = c0; c < std::min(c0 + kTile, columns); ++c)
              to[toOffset + r * toRow + c] = from[fromOffset + r + c * fromColumn];
    });
    return;
  }
  const std::size_t last = merged - 1;
  const std::int64_t count = dims[last], toStep = toStrides[last], fromStep = fromStrides[last];
  dims[last] = 1;
  forEachOffset(merged, dims, toStrides, fromStrides, [&](std::int64_t toOffset, std::int64_t fromOffset) {
    T* target = to + toOffset;
    const T* source = from + fromOffset;
    if (toStep == 1 && fromStep == 1)
      copyRun(target, source, count);
    else if (toStep == 1 && fromStep == 0)
      std::fill_n(target, count, *source);
    else
      for (std::int64_t i = 0; i < count; ++i) target[i * toStep] = source[i * fromStep];
  });
}

// --- gradients that add into places: float16 and bfloat16 accumulate in a float32 workspace, other types in the output.

// The types that are summed in a wider one.
template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Zeroes output 0 (or takes input `addend`, where it is there, as what is added to; it may be the output's memory), calls
// f(accumulator, values of input `source`), then rounds into the output where it was a workspace. The values are of the
// output's type, or float32 where that is a low one.
template <typename F>
Status accumulate(const KernelSpec& spec, const KernelCall& call, std::size_t source, F&& f, std::size_t addend = SIZE_MAX) {
  const TensorView& out = call.outputs[0];
  const std::int64_t count = out.elements();
  Status status;
  const bool known = dispatchNumeric(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* values = static_cast<const T*>(call.inputs[source].data);
    T* y = static_cast<T*>(out.data);
    const T* begin = call.inputPresent(addend) ? static_cast<const T*>(call.inputs[addend].data) : nullptr;
    if constexpr (kIsHalf<T>) {
      float* sums = reinterpret_cast<float*>(call.workspace.data());
      for (std::int64_t i = 0; i < count; ++i) sums[i] = begin ? static_cast<float>(begin[i]) : 0.0f;
      status = call.inputs[source].dtype == DType::kF32 ? f(sums, reinterpret_cast<const float*>(values)) : f(sums, values);
      for (std::int64_t i = 0; i < count; ++i) y[i] = T(sums[i]);
    } else {
      if (!begin)
        std::fill_n(y, count, T{});
      else if (begin != y)
        std::copy_n(begin, count, y);
      status = f(y, values);
    }
  });
  if (!known)
    return kernelError(spec, "type " + std::string(dtypeName(out.dtype)) + " cannot be added; expected a number type");
  return status;
}

// A plain function with the workspace that accumulate() needs.
std::unique_ptr<Kernel> makeAccumulatingKernel(const KernelSpec& spec, ReferenceFunction function);

// The factory of such a kernel, for a list.
template <ReferenceFunction kFunction>
Result<std::unique_ptr<Kernel>> accumulating(const KernelSpec& spec) {
  return makeAccumulatingKernel(spec, kFunction);
}

}  // namespace stepscope::reference
