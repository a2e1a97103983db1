#include "kernels/cpu/loops/strided.h"

#include <cstring>

namespace stepscope::cpu {

bool StridedCopy::add(std::int64_t extent, std::int64_t toStride, std::int64_t fromStride) {
  if (extent == 1) return true;
  if (rank_ > 0 && to_[rank_ - 1] == toStride * extent && from_[rank_ - 1] == fromStride * extent) {
    extents_[rank_ - 1] *= extent;
    to_[rank_ - 1] = toStride;
    from_[rank_ - 1] = fromStride;
    return true;
  }
  if (rank_ == kAxes) return false;
  extents_[rank_] = extent;
  to_[rank_] = toStride;
  from_[rank_++] = fromStride;
  return true;
}

std::int64_t StridedCopy::elements() const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < rank_; ++i) count *= extents_[i];
  return count;
}

namespace {

template <typename T>
void copyRun(T* to, std::int64_t toStep, const T* from, std::int64_t fromStep, std::int64_t count) {
  if (toStep == 1 && fromStep == 1)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  else if (toStep == 1 && fromStep == 0)
    std::fill_n(to, count, *from);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i * toStep] = from[i * fromStep];
}

}  // namespace

template <typename T>
void StridedCopy::runTyped(T* to, const T* from, int threads) const {
  if (rank_ == 0) {
    *to = *from;
    return;
  }
  const std::size_t last = rank_ - 1;
  const std::int64_t run = extents_[last], rows = elements() / run;
  if (rows == 1) {
    parallelElements(run, threads, [&](std::int64_t begin, std::int64_t end) {
      copyRun(to + begin * to_[last], to_[last], from + begin * from_[last], from_[last], end - begin);
    });
    return;
  }
  parallelRows(rows, run, threads, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::int64_t, kAxes> index{};
    std::int64_t toAt = 0, fromAt = 0;
    for (std::size_t i = last, rest = static_cast<std::size_t>(begin); i-- > 0;) {
      index[i] = static_cast<std::int64_t>(rest) % extents_[i];
      rest /= static_cast<std::size_t>(extents_[i]);
      toAt += index[i] * to_[i];
      fromAt += index[i] * from_[i];
    }
    for (std::int64_t row = begin; row < end; ++row) {
      copyRun(to + toAt, to_[last], from + fromAt, from_[last], run);
      for (std::size_t i = last; i-- > 0;) {
        toAt += to_[i];
        fromAt += from_[i];
        if (++index[i] < extents_[i]) break;
        toAt -= to_[i] * extents_[i];
        fromAt -= from_[i] * extents_[i];
        index[i] = 0;
      }
    }
  });
}

void StridedCopy::run(std::byte* to, const std::byte* from, std::size_t size, int threads) const {
  const auto typed = [&](auto tag) {
    using T = decltype(tag);
    runTyped(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), threads);
  };
  switch (size) {
    case 1: return typed(std::uint8_t{});
    case 2: return typed(std::uint16_t{});
    case 4: return typed(std::uint32_t{});
    default: return typed(std::uint64_t{});
  }
}

void fillElements(std::byte* to, const std::byte* value, std::int64_t count, std::size_t size, int threads) {
  parallelElements(count, threads, [&](std::int64_t begin, std::int64_t end) {
    const auto typed = [&](auto tag) {
      using T = decltype(tag);
      T one{};
      if (value != nullptr) std::memcpy(&one, value, sizeof one);
      std::fill(reinterpret_cast<T*>(to) + begin, reinterpret_cast<T*>(to) + end, one);
    };
    switch (size) {
      case 1: return typed(std::uint8_t{});
      case 2: return typed(std::uint16_t{});
      case 4: return typed(std::uint32_t{});
      default: return typed(std::uint64_t{});
    }
  });
}

}  // namespace stepscope::cpu
