#include "kernels/cpu/linear/attention_rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cpu/loops/draws.h"
#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu::attention {

SS_CLONES void addRow(const float* mask, std::int64_t step, float* x, std::int64_t n) {
  if (step == 0) {
    const float all = mask[0];
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] += all;
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] += mask[j];
  }
}

SS_CLONES void fillRow(const std::uint8_t* mask, std::int64_t step, bool invert, float value, float* x, std::int64_t n) {
  const std::int32_t dropped = invert ? 1 : 0;
  if (step == 0) {
    if (static_cast<std::int32_t>(mask[0] != 0) == dropped) std::fill_n(x, n, value);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float own = x[j];
    x[j] = static_cast<std::int32_t>(mask[j] != 0) != dropped ? own : value;
  }
}

SS_CLONES void capRow(float cap, float* x, float* slope, std::int64_t n) {
  const float inverse = 1 / cap;
  if (slope == nullptr) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] = cap * tanhOf(x[j] * inverse);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float bent = tanhOf(x[j] * inverse);
    x[j] = cap * bent;
    slope[j] = 1 - bent * bent;
  }
}

SS_CLONES void multiplyRow(const float* factors, float* x, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) x[j] *= factors[j];
}

SS_CLONES float largestOf(const float* x, std::int64_t n) {
  float max = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : max)
  for (std::int64_t j = 0; j < n; ++j) max = x[j] > max ? x[j] : max;
  return max;
}

SS_CLONES float powersOf(float shift, float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) {
    const float power = expOf(x[j] - shift);
    x[j] = power;
    sum += power;
  }
  return sum;
}

SS_CLONES float dotOf(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

SS_CLONES void scoreGradient(const float* p, float dot, float* dp, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) dp[j] = p[j] * (dp[j] - dot);
}

SS_CLONES void scaleRow(float factor, float* x, std::int64_t step, std::int64_t n) {
  if (step == 1) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] *= factor;
  } else {
    for (std::int64_t j = 0; j < n; ++j) x[j * step] *= factor;
  }
}

SS_CLONES void drawRow(const RandomKey& key, std::uint64_t element, float threshold, std::uint8_t* kept, std::int64_t n) {
  std::array<std::uint32_t, 256> words;
  for (std::int64_t at = 0; at < n;) {
    const std::uint64_t from = element + static_cast<std::uint64_t>(at);
    const auto skip = static_cast<std::int64_t>(from % 4);
    drawWords(key, from / 4, words);
    const std::int64_t take = std::min<std::int64_t>(static_cast<std::int64_t>(words.size()) - skip, n - at);
    for (std::int64_t j = 0; j < take; ++j) kept[at + j] = uniformOf(words[static_cast<std::size_t>(skip + j)]) >= threshold;
    at += take;
  }
}

SS_CLONES void keepRow(const std::uint8_t* kept, float factor, float* x, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float scaled = x[j] * factor;
    x[j] = kept[j] != 0 ? scaled : 0.0F;
  }
}

}  // namespace stepscope::cpu::attention
