#include "kernels/layout.h"

#include <algorithm>
#include <cstring>

namespace stepscope {
namespace {

// Sixteen rows of `inner` elements to `inner` rows of sixteen, or back.
template <typename T, bool kToBlocked>
void reorderAs(const T* from, T* to, std::int64_t blocks, std::int64_t inner, int threads) {
  constexpr std::int64_t kTile = 16;
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks * inner * kLayoutLanes > (1 << 15))
  for (std::int64_t block = 0; block < blocks; ++block) {
    const T* source = from + block * inner * kLayoutLanes;
    T* target = to + block * inner * kLayoutLanes;
    for (std::int64_t begin = 0; begin < inner; begin += kTile) {
      const std::int64_t end = begin + kTile < inner ? begin + kTile : inner;
      for (std::int64_t lane = 0; lane < kLayoutLanes; ++lane)
        for (std::int64_t i = begin; i < end; ++i) {
          if constexpr (kToBlocked)
            target[i * kLayoutLanes + lane] = source[lane * inner + i];
          else
            target[lane * inner + i] = source[i * kLayoutLanes + lane];
        }
    }
  }
}

template <typename T>
void reorderAs(const void* from, void* to, bool toBlocked, std::int64_t blocks, std::int64_t inner, int threads) {
  if (toBlocked)
    reorderAs<T, true>(static_cast<const T*>(from), static_cast<T*>(to), blocks, inner, threads);
  else
    reorderAs<T, false>(static_cast<const T*>(from), static_cast<T*>(to), blocks, inner, threads);
}

// What one layout has at [image, block of sixteen channels, position, lane], in elements from the beginning of the image.
struct Steps {
  std::int64_t block, position, lane;
};
Steps stepsOf(Layout layout, std::int64_t channels, std::int64_t inner) {
  if (layout == Layout::kPlain) return {kLayoutLanes * inner, 1, inner};
  if (layout == Layout::kChannels16) return {kLayoutLanes * inner, kLayoutLanes, 1};
  return {kLayoutLanes, channels, 1};
}

// To or from kChannelsLast.
template <typename T>
void reorderLast(const void* source, Layout fromLayout, void* target, Layout toLayout, const Dims& dims, int threads) {
  constexpr std::int64_t kTile = 32;  // positions whose channels stay in the cache
  const std::int64_t channels = dims[1], inner = elementCount(dims) / (dims[0] * channels),
                     tiles = (inner + kTile - 1) / kTile;
  const Steps f = stepsOf(fromLayout, channels, inner), t = stepsOf(toLayout, channels, inner);
#pragma omp parallel for schedule(static) num_threads(threads) if (dims[0] * channels * inner > (1 << 15))
  for (std::int64_t tile = 0; tile < dims[0] * tiles; ++tile) {
    const std::int64_t image = tile / tiles * channels * inner, begin = tile % tiles * kTile,
                       end = std::min(begin + kTile, inner);
    for (std::int64_t block = 0; block < channels / kLayoutLanes; ++block) {
      const T* from = static_cast<const T*>(source) + image + block * f.block;
      T* to = static_cast<T*>(target) + image + block * t.block;
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t lane = 0; lane < kLayoutLanes; ++lane)
          to[i * t.position + lane * t.lane] = from[i * f.position + lane * f.lane];
    }
  }
}

}  // namespace

std::string_view layoutName(Layout layout) {
  return layout == Layout::kPlain ? "plain" : layout == Layout::kChannels16 ? "nChw16c" : "nhwc";
}

std::string layoutRefusal(DType dtype, const Dims& dims) {
  if (dtype == DType::kString) return "strings; expected elements of a fixed size";
  if (dims.size() < 3) return "rank " + std::to_string(dims.size()) + "; expected at least one spatial axis";
  if (dims[1] % kLayoutLanes != 0) return std::to_string(dims[1]) + " channels; expected a multiple of 16";
  if (elementCount(dims) == 0) return "no elements";
  return {};
}

void reorderLayout(const void* from, Layout fromLayout, void* to, Layout toLayout, DType dtype, const Dims& dims,
                   int threads) {
  const auto bytes = static_cast<std::size_t>(elementCount(dims)) * dtypeSize(dtype);
  if (fromLayout == toLayout) {
    std::memcpy(to, from, bytes);
    return;
  }
  SS_CHECK(layoutRefusal(dtype, dims).empty());
  if (fromLayout == Layout::kChannelsLast || toLayout == Layout::kChannelsLast) {
    switch (dtypeSize(dtype)) {
      case 1: return reorderLast<std::uint8_t>(from, fromLayout, to, toLayout, dims, threads);
      case 2: return reorderLast<std::uint16_t>(from, fromLayout, to, toLayout, dims, threads);
      case 4: return reorderLast<std::uint32_t>(from, fromLayout, to, toLayout, dims, threads);
      default: return reorderLast<std::uint64_t>(from, fromLayout, to, toLayout, dims, threads);
    }
  }
  const std::int64_t blocks = dims[0] * dims[1] / kLayoutLanes, inner = elementCount(dims) / (blocks * kLayoutLanes);
  const bool toBlocked = toLayout == Layout::kChannels16;
  switch (dtypeSize(dtype)) {
    case 1: return reorderAs<std::uint8_t>(from, to, toBlocked, blocks, inner, threads);
    case 2: return reorderAs<std::uint16_t>(from, to, toBlocked, blocks, inner, threads);
    case 4: return reorderAs<std::uint32_t>(from, to, toBlocked, blocks, inner, threads);
    default: return reorderAs<std::uint64_t>(from, to, toBlocked, blocks, inner, threads);
  }
}

}  // namespace stepscope
