// Steps of attention over a row of scores: n floats that lie side by side unless a stride is said. Loops that become vector
// code; every sum is of one row, in an order that depends on n alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/random.h"

namespace stepscope::cpu::attention {

// x += mask; `step` 0: mask[0] everywhere, else element by element.
void addRow(const float* mask, std::int64_t step, float* x, std::int64_t n);
// x = `value` where the mask drops: where it is 0, or with `invert` where it is not. `step` as above.
void fillRow(const std::uint8_t* mask, std::int64_t step, bool invert, float value, float* x, std::int64_t n);
// x = cap tanh(x / cap), and its slope; null where there is no room for it.
void capRow(float cap, float* x, float* slope, std::int64_t n);
// x *= factors.
void multiplyRow(const float* factors, float* x, std::int64_t n);
// -infinity of no elements.
float largestOf(const float* x, std::int64_t n);
// x = exp(x - shift); their sum.
float powersOf(float shift, float* x, std::int64_t n);
float dotOf(const float* a, const float* b, std::int64_t n);
// dp = p (dp - dot): through a softmax whose probabilities are p.
void scoreGradient(const float* p, float dot, float* dp, std::int64_t n);
// x *= factor, of elements `step` apart.
void scaleRow(float factor, float* x, std::int64_t step, std::int64_t n);
// kept = 1 for those of n elements from `element` on that Dropout keeps (kernels/random.h), else 0.
void drawRow(const RandomKey& key, std::uint64_t element, float threshold, std::uint8_t* kept, std::int64_t n);
// x *= factor where it is kept; 0 elsewhere.
void keepRow(const std::uint8_t* kept, float factor, float* x, std::int64_t n);

// of(at, count), a sum in float32 of `count` elements from `at` on, over n elements: blocks are added in double.
template <typename Of>
double sumInBlocks(std::int64_t n, Of&& of) {
  constexpr std::int64_t kSumBlock = 1024;
  double sum = 0;
  for (std::int64_t at = 0; at < n; at += kSumBlock) sum += static_cast<double>(of(at, std::min(kSumBlock, n - at)));
  return sum;
}

}  // namespace stepscope::cpu::attention
