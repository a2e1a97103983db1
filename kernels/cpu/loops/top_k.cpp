// TopK of float32: numbers become keys whose order is the wanted one, with the position in the low bits, so that equal
// numbers keep the lower position first. NaN counts as the largest.
#include <array>
#include <bit>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

// A key per number of x[begin * step …]; `flip` turns the order round for the largest first. The least of them.
template <bool kContiguous>
SS_CLONES std::uint64_t keysIn(const float* x, std::int64_t stride, std::uint32_t flip, std::int64_t begin,
                               std::uint64_t* keys, std::int64_t count) {
  const std::int64_t step = kContiguous ? 1 : stride;
  std::uint64_t least = UINT64_MAX;
#pragma omp simd reduction(min : least)
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = x[(begin + i) * step] + 0.0F;  // both zeros are one number
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rising = bits ^ (static_cast<std::uint32_t>(-static_cast<std::int32_t>(bits >> 31)) | 0x80000000U);
    const std::uint32_t key = value != value ? 0xFFFFFFFFU : rising;
    keys[i] = (static_cast<std::uint64_t>(key ^ flip) << 32) | static_cast<std::uint64_t>(begin + i);
    least = keys[i] < least ? keys[i] : least;
  }
  return least;
}

std::uint64_t keysOf(const float* x, std::int64_t step, std::uint32_t flip, std::int64_t begin, std::uint64_t* keys,
                     std::int64_t count) {
  return step == 1 ? keysIn<true>(x, step, flip, begin, keys, count) : keysIn<false>(x, step, flip, begin, keys, count);
}

// The least key that is greater than `last`: keys are all different.
SS_CLONES std::uint64_t leastAbove(const std::uint64_t* keys, std::int64_t count, std::uint64_t last) {
  std::uint64_t least = UINT64_MAX;
#pragma omp simd reduction(min : least)
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t key = keys[i] > last ? keys[i] : UINT64_MAX;
    least = key < least ? key : least;
  }
  return least;
}

// The k least keys in front of `keys`, which has room for `extent`, in order: few are found while the line is read, block by
// block, most blocks hold none of them.
constexpr std::int64_t kFew = 64;
constexpr std::int64_t kVeryFew = 4, kShort = 512;  // so few of a short line are looked for one after the other
void leastOf(const float* x, std::int64_t step, std::uint32_t flip, std::int64_t extent, std::int64_t k,
             std::uint64_t* keys) {
  if (k > kFew) {
    keysOf(x, step, flip, 0, keys, extent);
    if (k < extent) std::nth_element(keys, keys + k - 1, keys + extent);
    std::sort(keys, keys + k);
    return;
  }
  if (k <= kVeryFew && extent <= kShort) {
    std::array<std::uint64_t, kVeryFew> found;
    std::uint64_t last = keysOf(x, step, flip, 0, keys, extent);
    for (std::int64_t n = 0; n < k; ++n) {
      found[static_cast<std::size_t>(n)] = last;
      if (n + 1 < k) last = leastAbove(keys, extent, last);
    }
    std::copy_n(found.begin(), k, keys);
    return;
  }
  std::array<std::uint64_t, kFew> block;
  std::int64_t found = 0;
  for (std::int64_t at = 0; at < extent; at += kFew) {
    const std::int64_t n = std::min(kFew, extent - at);
    const std::uint64_t least = keysOf(x, step, flip, at, block.data(), n);
    if (found == k && least > keys[k - 1]) continue;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t key = block[static_cast<std::size_t>(i)];
      if (found == k && key > keys[k - 1]) continue;
      std::int64_t place = found < k ? found++ : k - 1;
      for (; place > 0 && keys[place - 1] > key; --place) keys[place] = keys[place - 1];
      keys[place] = key;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeTopK(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesScalar(spec, 1) || spec.outputs.empty())
    return notTaken(spec, "elements other than float32");
  const Dims& dims = spec.inputs[0].dims;
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  const std::int64_t outer = elementCount(all.first(a)), extent = dims[a], inner = elementCount(all.subspan(a + 1));
  std::int64_t planned = -1;
  for (std::size_t o = 0; o < 2; ++o) {
    if (!spec.outputPresent(o)) continue;
    if (!takesOutput(spec, o, o == 0 ? DType::kF32 : DType::kI64) || spec.outputs[o].dims.size() != dims.size())
      return notTaken(spec, "results without extents");
    planned = spec.outputs[o].dims[a];
    if (elementCount(spec.outputs[o].dims) != outer * planned * inner) return notTaken(spec, "results of other sizes");
  }
  if (planned < 1 || planned > extent || extent > INT32_MAX) return notTaken(spec, "k out of range");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const std::int64_t lines = outer * inner, k = planned;
  const Parts parts = partsOf(lines, extent * 4, spec.threads);
  const std::uint32_t flip = spec.attrs.integer("largest", 1) != 0 ? 0xFFFFFFFFU : 0;
  const auto body = [=](const KernelCall& call) -> Status {
    if (elementAsInt(call.inputs[1], 0) != k) return reference->run(call);
    const float* x = input(call, 0);
    float* values = call.outputPresent(0) ? output(call, 0) : nullptr;
    auto* positions = call.outputPresent(1) ? output<std::int64_t>(call, 1) : nullptr;
    parallelParts(lines, parts, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      auto* keys = reinterpret_cast<std::uint64_t*>(call.workspace.data()) + part * extent;
      for (std::int64_t line = begin; line < end; ++line) {
        const float* from = x + line / inner * extent * inner + line % inner;
        leastOf(from, inner, flip, extent, k, keys);
        for (std::int64_t n = 0; n < k; ++n) {
          const auto position = static_cast<std::int64_t>(keys[n] & 0xFFFFFFFFU);
          const std::int64_t at = (line / inner * k + n) * inner + line % inner;
          if (values != nullptr) values[at] = from[position * inner];
          if (positions != nullptr) positions[at] = position;
        }
      }
    });
    return {};
  };
  // The reference kernel orders the positions of one line in the same memory.
  return makeBodyKernel(
      "ordered keys", body,
      std::max(static_cast<std::size_t>(parts * extent) * sizeof(std::uint64_t), reference->workspaceBytes()));
}

}  // namespace stepscope::cpu
