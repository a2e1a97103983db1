#include "kernels/cpu/loops/support.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stepscope::cpu {

#if defined(__SSE2__)

namespace {

bool aligned(const float* to, std::int64_t count) { return reinterpret_cast<std::uintptr_t>(to) % 16 == 0 && count >= 16; }

}  // namespace

void streamCopy(float* to, const float* from, std::int64_t count) {
  std::int64_t i = 0;
  if (aligned(to, count))
    for (; i + 16 <= count; i += 16)  // a whole cache line at a time
      for (std::int64_t j = i; j < i + 16; j += 4) _mm_stream_ps(to + j, _mm_loadu_ps(from + j));
  std::memcpy(to + i, from + i, static_cast<std::size_t>(count - i) * sizeof *to);
}

void streamZeros(float* to, std::int64_t count) {
  std::int64_t i = 0;
  if (aligned(to, count))
    for (; i + 16 <= count; i += 16)
      for (std::int64_t j = i; j < i + 16; j += 4) _mm_stream_ps(to + j, _mm_setzero_ps());
  std::memset(to + i, 0, static_cast<std::size_t>(count - i) * sizeof *to);
}

void finishStreams() { _mm_sfence(); }

#else

void streamCopy(float* to, const float* from, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof *to);
}
void streamZeros(float* to, std::int64_t count) { std::memset(to, 0, static_cast<std::size_t>(count) * sizeof *to); }
void finishStreams() {}

#endif

}  // namespace stepscope::cpu
