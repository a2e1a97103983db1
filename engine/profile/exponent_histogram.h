// How the magnitudes of floating numbers lie within the range of their type.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tensor.h"

namespace stepscope {

// Counts of elements. Zeros and what is not finite have no exponent.
struct ExponentHistogram {
  std::int64_t elements = 0, zeros = 0, notFinite = 0;
  std::int64_t nearOverflow = 0;         // finite, and at least half of the largest number of its type
  std::int64_t subnormal = 0;            // not zero, and below the smallest normal number of its type
  std::vector<std::int64_t> byExponent;  // empty until something is added; see exponent()

  static constexpr int kLowest = -1074, kHighest = 1023;  // of float64, subnormal ones included
  std::int64_t exponent(int e) const {                    // how many have 2^e <= |x| < 2^(e + 1)
    return byExponent.empty() ? 0 : byExponent[static_cast<std::size_t>(e - kLowest)];
  }

  // float32, float64, float16 or bfloat16; others are left out.
  void add(const TensorView& view);
  void add(double number, DType type);  // one number, with the limits of `type`
};

// Limits of a floating type.
double largestNumber(DType type);
double smallestNormal(DType type);

}  // namespace stepscope
